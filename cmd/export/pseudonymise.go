package export

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"likectl/cmd/cli"
	"likectl/pkg/export"
	"likectl/pkg/pseudonym"
)

// Pseudonymise says under which salt users get pseudonyms.
type Pseudonymise struct {
	// SaltFile holds the salt; empty: user ids are written.
	SaltFile string
	// RotateAfter is the age at which the salt is replaced.
	RotateAfter time.Duration
	// ExactTime keeps the time of day of likes.
	ExactTime bool
}

// days is a duration that may be given in days.
type days time.Duration

var _ pflag.Value = (*days)(nil)

// String returns whole days as such.
func (d *days) String() string {
	const day = 24 * time.Hour
	if t := time.Duration(*d); t%day != 0 {
		return t.String()
	}
	return strconv.FormatInt(int64(time.Duration(*d)/day), 10) + "d"
}

// Set reads 30d, or what Go reads.
func (d *days) Set(text string) error {
	const most = 100_000 // a duration holds
	if whole, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(whole)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("%q: want days such as 30d, or hours such as 12h", text)
		}
		*d = days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	t, err := time.ParseDuration(text)
	*d = days(t)
	return err
}

// Type names the values in help texts.
func (d *days) Type() string { return "duration" }

const pseudonymiseHelp = `
With --pseudonymise, the column user_id gives way to pseudonym: 32 hex digits, a
keyed hash (HMAC-SHA-256, 128 bits) of the id under the salt in --salt-file. The
file is made, for its owner only, if it is missing. A salt older than
--rotate-after is replaced, and the one before is gone for good: pseudonyms of two
exports agree if they were made under one salt, and never otherwise. liked_at is
cut to the day, in UTC, unless --exact-time is given, and the lines of an item
are in the order of the pseudonyms, not of the ids.

It protects from whoever gets the export and knows ids: he finds nobody by id, and
cannot tell by pseudonyms who is who in exports of different periods. It does not
protect from whoever also gets the salt file, nor from what the items tell: item
ids stay, so who is known to have liked some items that few others liked can be
recognised by them, with all else he liked, in every export. It is personal data
still; treat it so. It cannot be imported.
`

// addPseudonymise adds the flags, and returns what they say together with the
// others'.
func addPseudonymise(cmd *cobra.Command) func(o Options) (Pseudonymise, error) {
	set := cmd.Flags()
	const month = 30 * 24 * time.Hour
	p, rotate, on := Pseudonymise{}, days(month), false
	set.BoolVar(&on, "pseudonymise", false, "write pseudonyms in place of user ids; needs --salt-file")
	set.StringVar(&p.SaltFile, "salt-file", "", "`FILE` with the salt of pseudonyms and its date; made if it is missing")
	set.Var(&rotate, "rotate-after", "age at which the salt is replaced, 1h to 3650d")
	set.BoolVar(&p.ExactTime, "exact-time", false, "with --pseudonymise, keep liked_at to the microsecond instead of the day")
	return func(o Options) (Pseudonymise, error) {
		p.RotateAfter = time.Duration(rotate)
		if !on {
			for _, name := range []string{"salt-file", "rotate-after", "exact-time"} {
				if set.Changed(name) {
					return p, cli.Usagef("--%s goes with --pseudonymise", name)
				}
			}
			return Pseudonymise{}, nil
		}
		switch {
		case o.User != 0:
			return p, cli.Usagef("--pseudonymise and --user exclude each other: a file of one known user hides nobody")
		case p.SaltFile == "":
			return p, cli.Usagef("--pseudonymise needs --salt-file FILE; it is made if it is missing, and must be kept secret and be kept: " +
				"exports under one salt can be joined, others cannot")
		case sameFile(p.SaltFile, o.Path):
			return p, cli.Usagef("--salt-file and --out are the same file")
		}
		if err := pseudonym.CheckRotation(p.RotateAfter); err != nil {
			return p, cli.Usagef("--rotate-after: %w", err)
		}
		return p, nil
	}
}

// sameFile says whether two names lead to one file, or would if there were one: an
// export that took the salt's place would end it.
func sameFile(a, b string) bool {
	at, errA := os.Stat(a)
	to, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(at, to)
	}
	a, errA = filepath.Abs(a)
	b, errB = filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// open opens the salt and says which it is; nil without pseudonyms.
func (p Pseudonymise) open(errOut io.Writer) (*export.Pseudonyms, error) {
	if p.SaltFile == "" {
		return nil, nil
	}
	salt, made, err := pseudonym.Open(p.SaltFile, p.RotateAfter, time.Now())
	if err != nil {
		return nil, err
	}
	state := "the"
	if made {
		state = "a new"
	}
	_, err = fmt.Fprintf(errOut, "pseudonyms under %s %v in %s; the first export from %s on gets another\n",
		state, salt, p.SaltFile, salt.Made.Add(p.RotateAfter).Format(time.RFC3339))
	return &export.Pseudonyms{Salt: salt, ExactTime: p.ExactTime}, err
}
