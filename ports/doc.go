// Package ports is what the phase needs from the world, one small interface a
// need. An adapter implements one; ports/porttest proves that it does. (Inbound
// handlers, which other code bases call ports, are adapters here.)
package ports
