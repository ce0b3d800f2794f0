package tiertest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// built are the parts of the project that exist: their rows need a test.
var built = map[string]bool{"tier 1": true, "people": true}

// due are rows of a built part that belong to work of a later step.
var due = map[int]string{
	53: "due with the API and bench work: the generator measures cold items",
	54: "due with the API and bench work: writes per like are reported there",
}

// named finds the rows that tests outside this package name: a call of Case in Go,
// "# case N: …" in a script.
func named(t *testing.T) map[int][]string {
	inGo := regexp.MustCompile(`\bCase\(tb?, (\d+)\)`)
	inScript := regexp.MustCompile(`(?m)^# case (\d+)\b`)
	found := map[int][]string{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		pattern := inGo
		switch {
		case strings.HasSuffix(path, ".txtar"):
			pattern = inScript
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			n, _ := strconv.Atoi(m[1])
			found[n] = append(found[n], path)
		}
		return err
	}))
	return found
}

// TestEveryCaseOfABuiltPartHasATest keeps the table honest. That the tests pass
// is theirs to show; that none is skipped, Case sees to.
func TestEveryCaseOfABuiltPartHasATest(t *testing.T) {
	rows, err := Rows()
	require.NoError(t, err)
	tested := named(t)
	for _, c := range serviceCases() {
		tested[c.number] = append(tested[c.number], "Run")
	}
	for _, c := range httpCases() {
		tested[c.number] = append(tested[c.number], "HTTP")
	}
	known := map[int]bool{}
	for _, r := range rows {
		known[r.Number] = true
		_, later := due[r.Number]
		switch {
		case !built[r.From] || !strings.ContainsAny(r.Kind, "HC"):
		case later:
			t.Logf("case %d is %s", r.Number, due[r.Number])
		default:
			if len(tested[r.Number]) == 0 {
				t.Errorf("case %d has no test: %s; so: %s", r.Number, r.Try, r.Outcome)
			}
		}
	}
	for n := range tested {
		require.True(t, known[n], "tests name case %d, the table does not have it", n)
	}
	for n := range due {
		require.Empty(t, tested[n], "case %d has a test and is no longer due later", n)
	}
}
