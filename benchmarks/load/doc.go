// Package load is an open-loop load generator for HTTP servers.
//
// Open loop: when a request is due is fixed before the run, at the wanted rate, and
// does not depend on how fast the server answers. Its latency counts from that
// instant, not from when a connection was free to send it. So a server that stands
// still for half a second is charged with the wait of everyone who would have come
// in that half second, and not with that of the few who happened to be in flight
// (the "coordinated omission" of closed-loop tools; Gil Tene, "How NOT to Measure
// Latency", 2013).
//
// One thread sleeps by the kernel's clock until requests are due and hands them to
// connections; a connection is a goroutine with a socket and two buffers that writes
// a request and reads the answer as far as its end must be found. It allocates
// nothing per request.
package load
