package config

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// textProblems names what was set but would not be understood, or not as it was
// meant: keys and variables that do not exist, and times without a unit.
func textProblems(v *viper.Viper) (bad []Problem) {
	var known []string
	walk(reflect.ValueOf(Default()), "", func(key string, f reflect.Value) {
		known = append(known, key)
		if f.Type() == reflect.TypeFor[time.Duration]() {
			if n, ok := bare(v.Get(key)); ok {
				bad = append(bad, Problem{key, "durations need a unit: " + n + "s"})
			}
		}
	})
	keys := v.AllKeys()
	slices.Sort(keys)
	for _, key := range keys {
		// Above a known key stands a section, which the decoder checks.
		if !slices.ContainsFunc(known, func(k string) bool {
			return k == key || strings.HasPrefix(k, key+".") || k == "items.types" && strings.HasPrefix(key, k+".")
		}) {
			bad = append(bad, Problem{key, "there is no such key; the nearest is " + nearest(key, known)})
		}
	}
	return append(bad, strayVariables(os.Environ(), known)...)
}

// strayVariables names variables with our prefix that set nothing: a typo there has
// to be as loud as one in the file. Those of the tests start the programme with
// the tests' own environment.
func strayVariables(env, keys []string) (bad []Problem) {
	known := make([]string, len(keys))
	for i, key := range keys {
		known[i] = envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
	}
	tests := []string{envPrefix + "_SEED", envPrefix + "_OPS", envPrefix + "_KILLS", envPrefix + "_DOCKER"}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case value == "", !strings.HasPrefix(name, envPrefix+"_"), strings.HasPrefix(name, envPrefix+"_TEST_"),
			slices.Contains(known, name), slices.Contains(tests, name):
		default:
			bad = append(bad, Problem{name, "sets nothing, although it is in the environment; the nearest is " + nearest(name, known)})
		}
	}
	return bad
}

// bare returns a number that stands where a time is wanted. 0 is left to the
// check of limits.
func bare(value any) (string, bool) {
	text := fmt.Sprint(value)
	n, err := strconv.ParseFloat(text, 64)
	_, isTime := value.(time.Duration)
	return text, err == nil && n != 0 && !isTime
}

// strictTypes keeps the decoder from reading one kind of value as another, which
// would switch limits off for enabled: "". Variables of the environment are texts, so
// those still become numbers and switches.
func strictTypes(c *mapstructure.DecoderConfig) {
	c.DecodeHook = mapstructure.ComposeDecodeHookFunc(mapstructure.DecodeHookFuncKind(sameKind), c.DecodeHook)
}

func sameKind(from, to reflect.Kind, value any) (any, error) {
	number := func(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }
	whole := func() bool { f, ok := value.(float64); return !ok || f == math.Trunc(f) }
	single := to == reflect.Bool || number(to)
	switch {
	case single && from == reflect.String && value == "",
		to == reflect.Bool && number(from),
		from == reflect.Bool && (number(to) || to == reflect.String),
		from == reflect.Float64 && (to == reflect.Int || to == reflect.Int64) && !whole():
		return nil, fmt.Errorf("a %v is no %v", from, to)
	}
	return value, nil
}

// nearest returns the word that takes the fewest edits (Levenshtein 1966).
func nearest(word string, of []string) string {
	return slices.MinFunc(of, func(a, b string) int { return distance(word, a) - distance(word, b) })
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
