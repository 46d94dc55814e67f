package main

import (
	"context"
	"fmt"

	"countersign/db"
	"countersign/internal/credential"
	"countersign/internal/secret"
)

type keyRotateCommand struct {
	place
	Step string `enum:"add,promote,reseal,disable,destroy,all" default:"all" help:"One step, for replicas that share the keyset file: add, restart all, promote, restart all, reseal, disable, and later destroy. all does add to disable on a single server that is stopped."`
}

// Run rotates in steps that each leave a working keyset: a key is known to every server before the first one seals with it.
func (c *keyRotateCommand) Run(p *process) error {
	keys, err := c.keys()
	if err != nil {
		return err
	}
	steps := []string{c.Step}
	if c.Step == "all" {
		steps = []string{"add", "promote", "reseal", "disable"}
	}
	for _, step := range steps {
		if keys, err = c.step(p, step, keys); err != nil {
			return err
		}
	}
	return nil
}

func (c *keyRotateCommand) step(p *process, step string, keys *secret.Keyset) (*secret.Keyset, error) {
	switch step {
	case "reseal":
		return keys, c.reseal(p, keys)
	case "add":
		for _, purpose := range secret.Purposes {
			next, id, err := keys.AddKey(purpose)
			if err != nil {
				return nil, err
			}
			keys = next
			fmt.Fprintf(p.stdout, "Added key %d for %s. It opens and verifies; nothing is sealed with it yet.\n", id, purpose)
		}
		return keys, keys.Save(c.keysetPath())
	}
	return c.turn(p, step, keys)
}

// turn promotes the newest key of each purpose, or disables or destroys the keys it has replaced. Keys of the audit chain are promoted but
// never disabled: old entries must stay verifiable.
func (c *keyRotateCommand) turn(p *process, step string, keys *secret.Keyset) (*secret.Keyset, error) {
	newest := map[secret.Purpose]secret.KeyInfo{}
	for _, k := range keys.Keys() {
		newest[k.Purpose] = k // in the order of the file, so the last added one stays
	}
	for _, k := range keys.Keys() {
		var err error
		next := keys
		switch {
		case step == "promote" && k.ID == newest[k.Purpose].ID && !k.Primary:
			next, err = keys.Promote(k.Purpose, k.ID)
		case step == "disable" && !k.Primary && k.Enabled && k.Purpose == secret.Sealing:
			next, err = keys.Disable(k.Purpose, k.ID)
		case step == "destroy" && !k.Enabled:
			next, err = keys.Destroy(k.Purpose, k.ID)
		}
		if err != nil {
			return nil, err
		}
		if next != keys {
			fmt.Fprintf(p.stdout, "%s: key %d for %s.\n", step, k.ID, k.Purpose)
		}
		keys = next
	}
	return keys, keys.Save(c.keysetPath())
}

func (c *keyRotateCommand) reseal(p *process, keys *secret.Keyset) error {
	return c.withDatabase(p, func(ctx context.Context, d *database) error {
		vault := credential.NewVault(keys, db.Credentials{DB: d.DB})
		places, err := sealedPlaces(ctx, d)
		if err != nil {
			return err
		}
		total := 0
		for _, place := range places {
			n, err := vault.Reseal(ctx, place)
			if err != nil {
				return err
			}
			total += n
		}
		fmt.Fprintf(p.stdout, "Sealed %d credential fields of %d connections again.\n", total, len(places))
		return nil
	})
}

// sealedPlaces is every connection of every organization.
func sealedPlaces(ctx context.Context, d *database) ([]credential.Place, error) {
	orgs, err := d.people().Organizations(ctx)
	if err != nil {
		return nil, err
	}
	var places []credential.Place
	for _, org := range orgs {
		connections, err := db.Connections{DB: d.DB}.Connections(ctx, org.ID)
		if err != nil {
			return nil, err
		}
		for _, c := range connections {
			places = append(places, credential.Place{Org: org.ID, Connection: c.Key})
		}
	}
	return places, nil
}
