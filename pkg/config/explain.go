package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"likectl/pkg/likes"
)

// envPrefix begins the names of the variables that set keys.
const envPrefix = "LIKECTL"

// Setting is one key, its value, and where that is from.
type Setting struct {
	Key string `json:"key"`
	// Value is a bool, number, string (durations too), or the item types; that
	// of a secret is redacted.
	Value any `json:"value"`
	// Origin is "flag", "environment LIKECTL_NAME", "file" or "default".
	Origin string `json:"origin"`
	Doc    string `json:"doc"`
}

// Text is the value on one line.
func (s Setting) Text() string {
	types, ok := s.Value.(map[string]int)
	if !ok {
		return fmt.Sprint(s.Value)
	}
	names := slices.SortedFunc(maps.Keys(types), func(a, b string) int {
		return cmp.Or(cmp.Compare(types[a], types[b]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s=%d", name, types[name])
	}
	return strings.Join(names, " ")
}

// Explained is a configuration with the origin of every key.
type Explained struct {
	File   string
	Config Config
	// Settings are all keys, in the order of the struct.
	Settings []Setting
	// Problems are all that is wrong; with any of them the configuration is not
	// to be used.
	Problems []Problem
}

// Err returns likes.ErrInvalid that names all problems, nil if there are none.
func (e *Explained) Err() error {
	err := joined(e.Problems)
	if n := len(e.Problems); n > 1 {
		return likes.Errorf(likes.ErrInvalid, "configuration%s has %d mistakes:\n  %s", in(e.File), n, strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	if err != nil {
		return likes.Errorf(likes.ErrInvalid, "configuration%s: %w", in(e.File), err)
	}
	return nil
}

func in(file string) string {
	if file == "" {
		return ""
	}
	return " in " + file
}

// Explain reads the configuration as [Load] does and says where every value is
// from. The error is that of a file that cannot be read; what is wrong with
// single keys is in Problems.
func Explain(file string, overrides map[string]any) (*Explained, error) {
	v, cfg, problems, err := read(file, overrides)
	if err != nil {
		return nil, err
	}
	e := &Explained{File: file, Config: cfg, Problems: problems}
	for _, p := range cfg.problems() {
		// A value that could not be read has been named already.
		if !slices.ContainsFunc(problems, func(o Problem) bool { return o.Key == p.Key }) {
			e.Problems = append(e.Problems, p)
		}
	}
	docs := docsOf(reflect.TypeFor[Config](), "")
	walk(reflect.ValueOf(cfg), "", func(key string, value reflect.Value) {
		variable := envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		s := Setting{Key: key, Value: printable(value), Origin: "default", Doc: docs[key]}
		_, overridden := overrides[key]
		switch {
		case overridden:
			s.Origin = "flag"
		case os.Getenv(variable) != "":
			s.Origin = "environment " + variable
		case file != "" && v.InConfig(key):
			s.Origin = "file"
		}
		e.Settings = append(e.Settings, s)
	})
	return e, nil
}

func printable(v reflect.Value) any {
	switch value := v.Interface().(type) {
	case Secret:
		return value.String()
	case time.Duration:
		return value.String()
	default:
		return value
	}
}

// docsOf returns the doc tag of every key.
func docsOf(t reflect.Type, prefix string) map[string]string {
	docs := make(map[string]string)
	for i := range t.NumField() {
		f := t.Field(i)
		key := prefix + f.Tag.Get("mapstructure")
		if f.Type.Kind() == reflect.Struct {
			maps.Copy(docs, docsOf(f.Type, key+"."))
		} else {
			docs[key] = f.Tag.Get("doc")
		}
	}
	return docs
}
