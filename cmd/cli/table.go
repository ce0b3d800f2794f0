package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// PrintTable prints rows as aligned columns; the first row is the header.
func PrintTable(w io.Writer, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	var err error
	for _, r := range rows {
		_, e := fmt.Fprintln(tw, strings.Join(r, "\t"))
		err = errors.Join(err, e)
	}
	return errors.Join(err, tw.Flush())
}

// Count returns a number with its noun, with an s unless it is one.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
