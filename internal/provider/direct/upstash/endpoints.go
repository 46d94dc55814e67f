package upstash

import (
	"net/http"

	"countersign/internal/provider/direct"
)

// Not offered: reset_password and rotating the QStash token. Their answers are new secrets, and whatever used the old ones stops.

var (
	none  = map[string]direct.Field{}
	of    = map[string]direct.Field{"id": id}
	theID = []string{"id"}
)

func flag(member, want string) *state {
	return &state{path: "/redis/database/{id}?credentials=hide", member: member, want: want}
}

func gone(path string) *state { return &state{path: path, present: "gone"} }

func reads(tool, title, words, path string) endpoint {
	e := endpoint{name: tool, title: title, words: words, method: http.MethodGet, path: path, fields: none}
	if inPath.MatchString(path) {
		e.fields, e.needs = of, theID
	}
	return e
}

func switches(tool, title, words, method, path, member, want string) endpoint {
	return endpoint{name: tool, title: title, words: words, method: method, path: path, fields: of, needs: theID, resource: "id", look: flag(member, want)}
}

var endpoints = []endpoint{
	reads("list_redis", "List Redis databases", "Lists the account's Redis databases, without their secrets.", "/redis/databases"),
	reads("get_redis", "Get one Redis database", "Reads the settings of one Redis database, without its secrets.", "/redis/database/{id}?credentials=hide"),
	reads("redis_stats", "Statistics of a Redis database", "Reads how a Redis database is used.", "/redis/stats/{id}"),
	reads("list_backups", "List backups", "Lists the backups of a Redis database.", "/redis/list-backup/{id}"),
	reads("list_teams", "List teams", "Lists the teams of the account.", "/teams"),
	reads("get_team", "Get one team", "Reads the members of a team.", "/teams/{id}"),
	reads("list_vector", "List vector indexes", "Lists the vector indexes, without their tokens.", "/vector/index"),
	reads("get_vector", "Get one vector index", "Reads the settings of one vector index, without its tokens.", "/vector/index/{id}"),
	reads("vector_stats", "Statistics of a vector index", "Reads how a vector index is used.", "/vector/index/{id}/stats"),
	reads("list_search", "List search indexes", "Lists the search indexes, without their tokens.", "/search"),
	reads("get_search", "Get one search index", "Reads the settings of one search index, without its tokens.", "/search/{id}"),
	reads("get_qstash_user", "QStash account", "Reads the QStash account, without its token.", "/qstash/user"),
	reads("qstash_stats", "Statistics of QStash", "Reads how QStash is used.", "/qstash/stats"),
	{
		name: "create_redis", title: "Create a Redis database", words: "Creates a Redis database. Its credentials are not shown; a person finds them in the console.",
		method: http.MethodPost, path: "/redis/database", resource: "database_name", needs: []string{"database_name", "platform", "primary_region"},
		fields: map[string]direct.Field{
			"database_name": name, "platform": direct.OneOf("Whose machines.", "aws", "gcp"), "primary_region": region, "read_regions": direct.ListOf("Where copies are.", region, 10),
			"plan": direct.ID("The plan."), "budget": direct.Number("US dollars a month.", 1, 1_000_000), "eviction": direct.Truth("Drop old keys when full."), "tls": direct.Truth("Encrypted connections."),
		},
		look: &state{path: "/redis/databases", listed: "database_name", called: "database_name", present: "there"},
	},
	{
		name: "rename_redis", title: "Rename a Redis database", words: "Changes the name of a Redis database; its address stays.", method: http.MethodPost, path: "/redis/rename/{id}",
		fields: map[string]direct.Field{"id": id, "name": name}, needs: []string{"id", "name"}, resource: "id", look: flag("database_name", "{name}"),
	},
	switches("enable_tls", "Require TLS", "Makes a Redis database take encrypted connections only. It cannot be turned off.", http.MethodPost, "/redis/enable-tls/{id}", "tls", "true"),
	switches("enable_eviction", "Enable eviction", "Lets a Redis database drop old keys when it is full.", http.MethodPost, "/redis/enable-eviction/{id}", "eviction", "true"),
	switches("disable_eviction", "Disable eviction", "Makes a Redis database refuse writes when it is full.", http.MethodPost, "/redis/disable-eviction/{id}", "eviction", "false"),
	switches("enable_autoupgrade", "Enable automatic upgrades", "Lets a Redis database move to a larger plan by itself.", http.MethodPost, "/redis/enable-autoupgrade/{id}", "auto_upgrade", "true"),
	switches("disable_autoupgrade", "Disable automatic upgrades", "Keeps a Redis database on its plan.", http.MethodPost, "/redis/disable-autoupgrade/{id}", "auto_upgrade", "false"),
	switches("enable_dailybackup", "Enable daily backups", "Makes a backup of a Redis database every day.", http.MethodPatch, "/redis/enable-dailybackup/{id}", "daily_backup_enabled", "true"),
	switches("disable_dailybackup", "Disable daily backups", "Ends the daily backups of a Redis database.", http.MethodPatch, "/redis/disable-dailybackup/{id}", "daily_backup_enabled", "false"),
	{
		name: "change_plan", title: "Change the plan", words: "Moves a Redis database to another plan, which costs differently.", method: http.MethodPost, path: "/redis/change-plan/{id}",
		fields: map[string]direct.Field{"id": id, "plan_name": direct.ID("The plan.")}, needs: []string{"id", "plan_name"}, resource: "id",
	},
	{
		name: "update_regions", title: "Change the read regions", words: "Sets where copies of a Redis database are.", method: http.MethodPost, path: "/redis/update-regions/{id}",
		fields: map[string]direct.Field{"id": id, "read_regions": direct.ListOf("All regions with a copy.", region, 10)}, needs: []string{"id", "read_regions"}, resource: "id",
	},
	{
		name: "update_budget", title: "Change the budget", words: "Sets what a Redis database may cost in a month, in US dollars.", method: http.MethodPatch, path: "/redis/update-budget/{id}",
		fields: map[string]direct.Field{"id": id, "budget": direct.Number("US dollars a month.", 1, 1_000_000)}, needs: []string{"id", "budget"}, resource: "id", look: flag("budget", "{budget}"),
	},
	{
		name: "move_to_team", title: "Move a database to a team", words: "Moves a Redis database to a team, whose members then reach it.", method: http.MethodPost, path: "/redis/move-to-team",
		fields: map[string]direct.Field{"database_id": id, "team_id": id}, needs: []string{"database_id", "team_id"}, resource: "database_id",
	},
	{
		name: "create_backup", title: "Make a backup", words: "Makes a backup of a Redis database.", method: http.MethodPost, path: "/redis/create-backup/{id}",
		fields: map[string]direct.Field{"id": id, "name": name}, needs: []string{"id", "name"}, resource: "id",
		look: &state{path: "/redis/list-backup/{id}", listed: "name", called: "name", present: "there"},
	},
	{
		name: "restore_backup", title: "Restore a backup", words: "Replaces everything in a Redis database by a backup.", method: http.MethodPost, path: "/redis/restore-backup/{id}",
		fields: map[string]direct.Field{"id": id, "backup_id": id}, needs: []string{"id", "backup_id"}, resource: "id", destructive: true,
	},
	{
		name: "delete_backup", title: "Delete a backup", words: "Deletes a backup of a Redis database.", method: http.MethodDelete, path: "/redis/delete-backup/{id}/{backup_id}",
		fields: map[string]direct.Field{"id": id, "backup_id": id}, needs: []string{"id", "backup_id"}, resource: "id", destructive: true,
		look: &state{path: "/redis/list-backup/{id}", listed: "backup_id", called: "backup_id", present: "gone"},
	},
	{
		name: "delete_redis", title: "Delete a Redis database", words: "Deletes a Redis database with everything in it.", method: http.MethodDelete, path: "/redis/database/{id}",
		fields: of, needs: theID, resource: "id", destructive: true, look: gone("/redis/database/{id}?credentials=hide"),
	},
	{
		name: "create_vector", title: "Create a vector index", words: "Creates a vector index. Its tokens are not shown.", method: http.MethodPost, path: "/vector/index",
		fields: map[string]direct.Field{
			"name": name, "region": region, "similarity_function": direct.OneOf("How vectors are compared.", "COSINE", "EUCLIDEAN", "DOT_PRODUCT"), "dimension_count": direct.Number("Numbers a vector has.", 1, 5000), "type": direct.ID("The plan."),
		},
		needs: []string{"name", "region", "similarity_function", "dimension_count"}, resource: "name", look: &state{path: "/vector/index", listed: "name", called: "name", present: "there"},
	},
	{
		name: "delete_vector", title: "Delete a vector index", words: "Deletes a vector index with everything in it.", method: http.MethodDelete, path: "/vector/index/{id}",
		fields: of, needs: theID, resource: "id", destructive: true, look: gone("/vector/index/{id}"),
	},
	{
		name: "create_search", title: "Create a search index", words: "Creates a search index. Its tokens are not shown.", method: http.MethodPost, path: "/search",
		fields: map[string]direct.Field{"name": name, "region": region, "type": direct.ID("The plan.")}, needs: []string{"name", "region"}, resource: "name",
		look: &state{path: "/search", listed: "name", called: "name", present: "there"},
	},
	{
		name: "delete_search", title: "Delete a search index", words: "Deletes a search index with everything in it.", method: http.MethodDelete, path: "/search/{id}",
		fields: of, needs: theID, resource: "id", destructive: true, look: gone("/search/{id}"),
	},
}
