package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"likectl/cmd/cli"
	"likectl/pkg/config"
	"likectl/pkg/datadir"
	"likectl/pkg/erase"
	"likectl/pkg/likes"
	"likectl/pkg/store"
	"likectl/pkg/store/postgres"
)

// Erasures returns the erasures of the tier's store, with receipts that the
// instances' secret signs: it must be loaded.
func (t *Tier) Erasures(cfg config.Config) (*erase.Local, error) {
	return erase.NewLocal(t.People, erase.ReceiptConfig{
		Secret: t.Secret, Store: string(t.engine), LogRetention: cfg.Erase.LogRetention, BackupRetention: cfg.Erase.BackupRetention,
	})
}

// Erasures are those of a store that a command works on, here or in a server.
type Erasures struct {
	erase.Registry
	// Name says in a few words where they are.
	Name string
	// Close ends the work with them.
	Close func(context.Context) error
}

// OpenErasures opens the store that the configuration names, or asks the running
// server at a URL.
func OpenErasures(ctx context.Context, cfg config.Config, admin string) (*Erasures, error) {
	if admin != "" {
		// That the server answers is found out before anything is asked of it.
		client, _, err := AskServer(ctx, cfg, admin)
		if err != nil {
			return nil, err
		}
		return &Erasures{client, "the server at " + admin, func(context.Context) error { client.Close(); return nil }}, nil
	}
	tier, err := OpenExisting(ctx, cfg)
	if err != nil {
		return nil, err
	}
	registry, err := erasuresOf(ctx, tier, cfg)
	if err != nil {
		return nil, errors.Join(err, tier.Close(context.WithoutCancel(ctx)))
	}
	return &Erasures{registry, tier.Backend, tier.Close}, nil
}

func erasuresOf(ctx context.Context, t *Tier, cfg config.Config) (*erase.Local, error) {
	if err := t.requireSecret(ctx, cfg); err != nil {
		return nil, err
	}
	return t.Erasures(cfg)
}

// requireSecret loads the secret for a command that signs with it, which must be
// the one of the instances on the store. It makes none.
func (t *Tier) requireSecret(ctx context.Context, cfg config.Config) error {
	if t.shared == nil {
		return nil // the data folder's own
	}
	secret, err := datadir.LoadSecret(cfg.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Usagef("receipts are signed with the secret of the instances on %s: %w", t.Backend, err)
	}
	if err != nil {
		return err
	}
	err = t.shared.ClaimSecret(ctx, datadir.Fingerprint(secret), false)
	if errors.Is(err, postgres.ErrOtherSecret) {
		return cli.Usagef("%s: %w than %s, so the receipts of one would be refused by the other; name the data folder of an instance with --data",
			t.Backend, err, datadir.SecretIn(cfg.Data))
	}
	t.Secret = secret
	return err
}

// resumeErasures goes on in the background with what broke off: nobody may ever
// run the command again. Several instances that start at once share the work.
func (s *Server) resumeErasures(ctx context.Context, erasures erase.Store) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		sum, err := erase.Resume(ctx, erasures, s.cfg.Erase.MaxRate, func(_ likes.UserID, e store.Erasure) error {
			s.log.Info("finished an erasure that had broken off", "user_hash", e.User.String(), "merged", e.Merged)
			return nil
		})
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.Error("erasures are left unfinished, nothing is applied for their users; `likectl erase resume` goes on with them", "error", err)
		case sum.Users > 0:
			s.log.Info("no erasure is left unfinished", "users", sum.Users, "rows", sum.Rows())
		}
	}()
	s.opened.Push("erasures", func(ctx context.Context) error {
		stop()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("a step of an erasure is under way: %w", ctx.Err())
		}
	})
}
