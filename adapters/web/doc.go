// Package web is the operator's console: server-rendered pages that answer what
// would be deleted, what was deleted, why a directory was kept and what to do
// about it, each with the record one click away.
//
// A Console is an http.Handler. It reads and steers through the Store it is
// given and connects to nothing itself; the one page that looks at a host does
// so through the Preview function it is given. Every page works without
// JavaScript. Every change is a POST from the same origin.
//
// Whatever comes from a host (file names, ref names, output) or from a database
// is shown as inert text: HTML escaped, with control characters, bidirectional
// overrides and invisible characters spelled out, and with the credentials of a
// URL struck out.
package web
