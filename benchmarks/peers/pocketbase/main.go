// Command pocketbase is PocketBase with one collection: a record per like, unique by
// user and item. Whoever wants a count asks for the number of an item's records.
//
// It is a module of its own, so that likectl does not depend on PocketBase.
//
//	pocketbase serve --http 127.0.0.1:8090 --dir DIR
//
// SYNCHRONOUS is SQLite's setting: NORMAL is PocketBase's own, which loses the last
// commits when the machine fails; FULL flushes every commit, as the other systems
// of the comparison do. HOT is how many likes item 1 has at the start.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/types"
	_ "modernc.org/sqlite"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pocketbase:", err)
		os.Exit(1)
	}
}

func run() error {
	hot, err := strconv.Atoi(os.Getenv("HOT"))
	if err != nil {
		return fmt.Errorf("HOT: %w", err)
	}
	app := pocketbase.NewWithConfig(pocketbase.Config{HideStartBanner: true, DBConnect: connect(os.Getenv("SYNCHRONOUS"))})
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.InstallerFunc = nil // nobody administers it
		e.App.Settings().Logs.MaxDays = 0
		if err := prepare(e.App, hot); err != nil {
			return err
		}
		var synchronous, journal string
		if err := e.App.DB().NewQuery("pragma synchronous").Row(&synchronous); err != nil {
			return err
		}
		if err := e.App.DB().NewQuery("pragma journal_mode").Row(&journal); err != nil {
			return err
		}
		fmt.Printf("synchronous=%s journal_mode=%s\n", synchronous, journal)
		return e.Next()
	})
	return app.Start()
}

// connect opens SQLite with the pragmas of PocketBase, but for synchronous.
func connect(synchronous string) core.DBConnectFunc {
	return func(path string) (*dbx.DB, error) {
		return dbx.Open("sqlite", path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)"+
			"&_pragma=synchronous("+synchronous+")&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)")
	}
}

// prepare makes the collection, open to everybody, and item 1's likes.
func prepare(app core.App, hot int) error {
	likes := core.NewBaseCollection("likes")
	likes.ListRule, likes.ViewRule, likes.CreateRule = types.Pointer(""), types.Pointer(""), types.Pointer("")
	likes.Fields.Add(
		&core.TextField{Name: "user", Required: true, Max: 20},
		&core.TextField{Name: "item", Required: true, Max: 20},
	)
	likes.AddIndex("likes_once", true, "item, user", "")
	if err := app.Save(likes); err != nil {
		return err
	}
	_, err := app.DB().NewQuery(`insert into likes (id, user, item)
		with recursive n(i) as (select 1 union all select i + 1 from n where i < {:n})
		select printf('x%014d', i), printf('p%d', i), '1' from n where {:n} > 0`).Bind(dbx.Params{"n": hot}).Execute()
	return err
}
