package erase

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"likectl/cmd/app"
	"likectl/cmd/cli"
	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
)

func printReceipt(w io.Writer, output cli.Output, r erase.Receipt) error {
	if output == cli.JSON {
		return writeJSON(w, r)
	}
	merged := "no"
	if r.Merged {
		merged = "yes"
	}
	rows := [][]string{
		{"user_hash", r.UserHash},
		{"store", r.Store},
		{"begun_at", stamp(r.BegunAt)},
		{"finished_at", stamp(r.FinishedAt)},
		{"merged", merged},
		{"edges", number(r.Edges)},
		{"tombstones", number(r.Tombstones)},
		{"relations", number(r.Relations)},
		{"log_expires_at", stamp(r.LogExpiresAt)},
		{"backups_expire_at", stamp(r.BackupsExpireAt)},
		{"signature", r.Signature},
	}
	if r.Edges+r.Tombstones+r.Relations == 0 {
		rows = append(rows, []string{"note", "there was nothing of this user: was it the right id? nothing of it is applied from now on"})
	}
	return cli.PrintTable(w, rows)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func number(n int64) string { return strconv.FormatInt(n, 10) }

// preview is what a dry run prints.
type preview struct {
	User       string `json:"user_id"`
	Into       string `json:"into_user_id,omitempty"`
	Target     string `json:"target"`
	DryRun     bool   `json:"dry_run"`
	State      string `json:"state"`
	Edges      int64  `json:"edges"`
	Tombstones int64  `json:"tombstones"`
	Relations  int64  `json:"relations"`
}

// The states of a user.
const (
	stateNone       = "not erased"
	stateUnfinished = "erasure begun, not finished"
	stateFinished   = "erased"
)

func dryRun(ctx context.Context, out io.Writer, o Options, e *app.Erasures) error {
	at, begun, err := e.Erasure(ctx, o.User)
	if err != nil {
		return err
	}
	left, err := e.Remains(ctx, o.User)
	if err != nil {
		return err
	}
	p := preview{
		User: id(o.User), Target: e.Name, DryRun: true, State: stateOf(at, begun),
		Edges: left.Edges, Tombstones: left.Tombstones, Relations: left.Relations,
	}
	if o.Into != 0 {
		p.Into = id(o.Into)
	}
	if o.Output == cli.JSON {
		return writeJSON(out, p)
	}
	rows := [][]string{
		{"user", p.User + ", " + p.State},
		{"in", p.Target},
		{"edges", number(p.Edges) + " likes and saves"},
		{"tombstones", number(p.Tombstones) + " likes and saves that were taken back"},
		{"relations", number(p.Relations) + " blocks, follows and owned items"},
	}
	if err := cli.PrintTable(out, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "nothing was changed: this was a dry run. Without --dry-run it is done at once and cannot be undone")
	return err
}

func stateOf(at store.Erasure, begun bool) string {
	switch {
	case !begun:
		return stateNone
	case at.Finished.IsZero():
		return stateUnfinished
	default:
		return stateFinished
	}
}

func id(u likes.UserID) string { return strconv.FormatInt(int64(u), 10) }

// verdict is what verify prints.
type verdict struct {
	User     string          `json:"user_id"`
	Target   string          `json:"target"`
	Erased   bool            `json:"erased"`
	Findings []erase.Finding `json:"findings"`
}

func printFindings(w io.Writer, o Options, target string, found []erase.Finding) error {
	if o.Output == cli.JSON {
		return writeJSON(w, verdict{id(o.User), target, len(found) == 0, append([]erase.Finding{}, found...)})
	}
	if len(found) == 0 {
		with := ""
		if o.Receipt != "" {
			with = ", and the receipt is good"
		}
		_, err := fmt.Fprintf(w, "user %d is erased: no row in %s names the user%s\n", o.User, target, with)
		return err
	}
	rows := [][]string{{"FOUND", "WHAT"}}
	for _, f := range found {
		rows = append(rows, []string{f.What, f.Text})
	}
	return cli.PrintTable(w, rows)
}

// unfinished is a row of status.
type unfinished struct {
	User       string    `json:"user_id"`
	Hash       string    `json:"user_hash"`
	Begun      time.Time `json:"begun_at"`
	Merged     bool      `json:"merged"`
	Edges      int64     `json:"edges"`
	Tombstones int64     `json:"tombstones"`
	Relations  int64     `json:"relations"`
}

func newUnfinished(u likes.UserID, e store.Erasure) unfinished {
	return unfinished{id(u), e.User.String(), e.Begun.UTC(), e.Merged, e.Edges, e.Tombstones, e.Relations}
}

func printStatus(w io.Writer, output cli.Output, target string, list []unfinished) error {
	if output == cli.JSON {
		return writeJSON(w, map[string]any{"target": target, "unfinished": list})
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(w, "no erasure and no merge is unfinished in %s\n", target)
		return err
	}
	rows := [][]string{{"USER", "KIND", "BEGUN", "ROWS GONE"}}
	for _, u := range list {
		kind := "erase"
		if u.Merged {
			kind = "merge"
		}
		rows = append(rows, []string{u.User, kind, stamp(u.Begun), number(u.Edges + u.Tombstones + u.Relations)})
	}
	if err := cli.PrintTable(w, rows); err != nil {
		return err
	}
	more := ""
	if len(list) == store.MaxErase {
		more = ", perhaps more"
	}
	_, err := fmt.Fprintf(w, "%s unfinished%s in %s; nothing is applied for these users. If nothing works on them now, "+
		"`likectl erase resume` goes on\n", cli.Count(int64(len(list)), "erasure"), more, target)
	return err
}

// summaryJSON is a [erase.Summary] in JSON.
type summaryJSON struct {
	Target     string `json:"target"`
	Users      int64  `json:"users"`
	Already    int64  `json:"already_erased"`
	Edges      int64  `json:"edges"`
	Tombstones int64  `json:"tombstones"`
	Relations  int64  `json:"relations"`
}

// PrintSummary prints what a run over many users did.
func PrintSummary(w io.Writer, output cli.Output, target string, sum erase.Summary) error {
	if output == cli.JSON {
		return writeJSON(w, summaryJSON{target, sum.Users, sum.Already, sum.Removed.Edges, sum.Removed.Tombstones, sum.Removed.Relations})
	}
	return cli.PrintTable(w, [][]string{
		{"in", target},
		{"erased", cli.Count(sum.Users, "user")},
		{"already", cli.Count(sum.Already, "user") + " that were erased before"},
		{"edges", number(sum.Removed.Edges)},
		{"tombstones", number(sum.Removed.Tombstones)},
		{"relations", number(sum.Removed.Relations)},
	})
}
