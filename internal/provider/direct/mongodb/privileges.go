package mongodb

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"countersign/internal/provider/direct"
)

// needed are the privileges that the tools use. harmlessToo come with the built-in roles and show nothing that the tools do not.
var (
	needed      = []string{"find", "listCollections", "listIndexes", "insert", "update", "remove"}
	harmlessToo = []string{"collStats", "dbHash", "dbStats", "killCursors", "planCacheRead", "changeStream", "listSearchIndexes", "convertToCapped", "listDatabases"}
	writing     = []string{"insert", "update", "remove"}
)

type privilege struct {
	Resource struct {
		DB, Collection string
		Cluster        bool
		AnyResource    bool `bson:"anyResource"`
	}
	Actions []string
}

// beyond says what the database user may do besides what the tools need. The server itself is asked, not the documentation.
func beyond(ctx context.Context, l *direct.Link) ([]string, error) {
	raw, err := ask(ctx, l, "admin", bson.D{{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}})
	if err != nil {
		return nil, err
	}
	var reply struct {
		AuthInfo struct {
			Privileges []privilege `bson:"authenticatedUserPrivileges"`
		} `bson:"authInfo"`
	}
	if err := bson.Unmarshal(raw, &reply); err != nil {
		return nil, err
	}
	return words(reply.AuthInfo.Privileges, l.Setting(DatabaseSetting)), nil
}

// reached sums privileges up.
type reached struct {
	databases, extra, cluster []string
	every, everyWritten       bool
	writes                    bool
}

func sum(list []privilege, bound string) (r reached) {
	for _, p := range list {
		writes := slices.ContainsFunc(p.Actions, func(a string) bool { return slices.Contains(writing, a) })
		if p.Resource.Cluster || p.Resource.AnyResource {
			r.cluster = append(r.cluster, unneeded(p.Actions)...)
		}
		switch {
		case p.Resource.Cluster:
		case p.Resource.AnyResource, p.Resource.DB == "" && p.Resource.Collection == "":
			r.every, r.everyWritten, r.writes = true, r.everyWritten || writes, r.writes || writes
		case p.Resource.DB == bound || bound == "":
			r.writes = r.writes || writes
			if !strings.HasPrefix(p.Resource.Collection, "system.") {
				r.extra = append(r.extra, unneeded(p.Actions)...)
			}
		case !slices.Contains(inner, p.Resource.DB):
			r.databases = append(r.databases, p.Resource.DB)
		}
	}
	for _, s := range []*[]string{&r.databases, &r.extra, &r.cluster} {
		slices.Sort(*s)
		*s = slices.Compact(*s)
	}
	return r
}

func unneeded(actions []string) (out []string) {
	for _, a := range actions {
		if !slices.Contains(needed, a) && !slices.Contains(harmlessToo, a) {
			out = append(out, a)
		}
	}
	return out
}

func words(list []privilege, bound string) (out []string) {
	if len(list) == 0 {
		return []string{"The server does not say what this user may do; look at its roles yourself."}
	}
	r := sum(list, bound)
	switch {
	case r.everyWritten:
		out = append(out, "This user may change every database of the server; a role on one database is enough.")
	case r.every:
		out = append(out, "This user may read every database of the server; a role on one database is enough.")
	case len(r.databases) > 0:
		out = append(out, "This user also reaches "+some(r.databases)+", which agents are kept from here only by this server.")
	}
	if len(r.extra) > 0 {
		out = append(out, "It may do what no tool here uses: "+some(r.extra)+".")
	}
	if len(r.cluster) > 0 {
		out = append(out, "It may act on the whole cluster: "+some(r.cluster)+".")
	}
	if !r.writes {
		out = append(out, "It may only read, so the database will refuse every change.")
	}
	if len(out) == 0 {
		out = []string{"This user may do what the tools need and no more."}
	}
	return out
}

func some(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}
