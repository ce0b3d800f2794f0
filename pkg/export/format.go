package export

import (
	"strings"

	"likectl/pkg/likes"
)

// Format is the form of an export.
type Format string

// The formats. CSV and JSONL are those of package ingest.
const (
	CSV     Format = "csv"
	JSONL   Format = "jsonl"
	Parquet Format = "parquet"
)

// Formats are the names of all formats.
func Formats() []string { return []string{string(CSV), string(JSONL), string(Parquet)} }

// ParseFormat returns the format of that name, or ErrInvalid.
func ParseFormat(name string) (Format, error) {
	switch f := Format(strings.ToLower(name)); f {
	case CSV, JSONL, Parquet:
		return f, nil
	default:
		return "", likes.Errorf(likes.ErrInvalid, "format %q is unknown, want csv, jsonl or parquet", name)
	}
}

// FormatOf returns the format that a file's name tells, CSV if it tells none.
func FormatOf(path string) Format {
	path = strings.TrimSuffix(path, ".gz")
	switch {
	case strings.HasSuffix(path, ".jsonl"), strings.HasSuffix(path, ".ndjson"):
		return JSONL
	case strings.HasSuffix(path, ".parquet"):
		return Parquet
	default:
		return CSV
	}
}
