// Package riverqueue has River decide which machine runs a cleanup job and when.
package riverqueue
