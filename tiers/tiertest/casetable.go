package tiertest

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

//go:embed testdata/cases.tsv
var caseTable string

// Row is one case that broke other like counters.
type Row struct {
	Number int
	// From is the first part of the project that it belongs to.
	From string
	// Kind: H plain HTTP, C command line or library, F needs a fault.
	Kind    string
	Try     string
	Outcome string
}

// Rows returns the table of cases.
func Rows() ([]Row, error) {
	var rows []Row
	lines := strings.Split(strings.TrimSpace(caseTable), "\n")
	for n, line := range lines[1:] {
		f := strings.Split(line, "\t")
		const columns = 5
		if len(f) != columns {
			return nil, fmt.Errorf("cases.tsv:%d: %d columns, want %d", n+2, len(f), columns)
		}
		number, err := strconv.Atoi(f[0])
		if err != nil {
			return nil, fmt.Errorf("cases.tsv:%d: %w", n+2, err)
		}
		rows = append(rows, Row{Number: number, From: f[1], Kind: f[2], Try: f[3], Outcome: f[4]})
	}
	return rows, nil
}

// Case says that a test shows a row of the table to hold. A test that names a
// number that is not in the table fails, and so does one that is then skipped:
// the table counts on it.
func Case(t testing.TB, number int) {
	t.Helper()
	rows, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Number == number {
			t.Logf("case %d: %s; so: %s", number, r.Try, r.Outcome)
			t.Cleanup(func() {
				if t.Skipped() {
					t.Errorf("case %d is skipped", number)
				}
			})
			return
		}
	}
	t.Fatalf("there is no case %d in testdata/cases.tsv", number)
}
