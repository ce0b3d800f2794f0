package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"likectl/pkg/likes"
)

// Users is a list of users that was read.
type Users struct {
	// IDs are the users, each once, in the order of the list.
	IDs []likes.UserID
	// Repeated is the number of lines with a user that an earlier one has.
	Repeated int64
	// Skipped is the number of bad lines, and Bad the first MaxBad of them.
	Skipped int64
	Bad     []*LineError
}

// ReadUsers reads a list of at most limit users, plain or gzipped: an id a line,
// or the first column of CSV, which may have a header that calls it user_id. Blank
// lines and those that begin with # say nothing. The first bad line is the error,
// a [*LineError], unless they are to be skipped; that of the first line is one even
// so: it may be the header of another kind of list.
func ReadUsers(r io.Reader, limit int, skip bool) (Users, error) {
	var out Users
	lines, err := openLines(r)
	if err != nil {
		return out, err
	}
	seen := make(map[likes.UserID]struct{})
	header := true // may still come
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil && !errors.Is(err, ErrLineTooLong) {
			return out, err
		}
		var user likes.UserID
		first := header
		if err == nil {
			line = bytes.TrimSpace(line) // next gives no blank ones
			user, err = userOf(line, header)
			header = header && line[0] == '#'
		}
		if err != nil {
			bad := &LineError{Line: lines.n, Err: err}
			if !skip || first { // the header of a file with another first column, whose numbers would be taken for users
				return out, bad
			}
			if out.Skipped++; len(out.Bad) < MaxBad {
				out.Bad = append(out.Bad, bad)
			}
			continue
		}
		if user == 0 {
			continue
		}
		if _, repeated := seen[user]; repeated {
			out.Repeated++
			continue
		}
		if len(out.IDs) == limit {
			return out, likes.Errorf(likes.ErrInvalid, "line %d: there are more than %d users: divide the list", lines.n, limit)
		}
		seen[user] = struct{}{}
		out.IDs = append(out.IDs, user)
	}
}

// userOf returns the user of a line, 0 if it names none.
func userOf(line []byte, header bool) (likes.UserID, error) {
	if line[0] == '#' {
		return 0, nil
	}
	column, _, _ := bytes.Cut(line, []byte{','})
	if line[0] == '"' {
		columns, err := splitQuoted(line)
		if err != nil {
			return 0, err
		}
		column = columns[0]
	}
	column = bytes.TrimSpace(column)
	if header && string(column) == userID.String() {
		return 0, nil
	}
	id, err := likes.ParseID(column)
	if err != nil {
		return 0, fmt.Errorf("the user %w", err)
	}
	return likes.UserID(id), nil
}
