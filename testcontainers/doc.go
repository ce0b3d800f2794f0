// Package containers runs the real servers that likectl's stores talk to (Postgres, Redis, Redis Cluster, Kafka,
// Cassandra) as Docker containers for tests, and breaks them on purpose.
//
// StartX gives a test a server of its own and removes it when the test ends. SharedX gives every test of the package the
// same server; the package's TestMain must then call [Main], which removes it. Tests separate themselves by a fresh
// database, topic or keyspace ([Postgres.Database], [Kafka.Topic], [Cassandra.Keyspace]).
//
// Every server listens on a fixed loopback port, so that its address outlives [Container.Kill] and [Container.Start]. The
// faults are what a crash test needs: Kill is SIGKILL, Pause freezes all processes, Cut drops every packet silently, and
// [Proxy] stands between client and server for latency, resets and black holes. A fault that a test leaves behind is
// undone when the test ends.
//
// The images are made available by images/setup.sh. A server that cannot start fails its test; only -short skips.
// Production code never imports this package.
package containers
