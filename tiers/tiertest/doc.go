// Package tiertest holds the suites that every tier runs, so that one promise is
// tested once and every tier is held to it. What a suite expects comes from
// [likes.Contract]: a tier differs by what it states, never by a suite of its own.
//
//   - [Run]: one check per sentence of the contract in pkg/likes, and the cases
//     that broke other like counters (testdata/cases.tsv).
//   - [Metamorphic]: one seed, one list of operations, the tier and the oracle
//     (pkg/memory) answer alike; a failing list is reduced before it is shown.
//   - [Concurrent]: clients at the same time, their recorded history judged by
//     [CheckEdges] (linearisable per edge), [CheckCounts] (every count was true
//     at an instant within the staleness) and [CheckVersions].
//   - [HTTP]: the API from outside, by any number of base URLs.
//   - [Crash]: the real binary and its database killed under load.
//
// A tier plugs in by a [Harness]: a function that opens a [Cluster]. [Remote] puts
// the API and its client between the suites and a harness.
package tiertest
