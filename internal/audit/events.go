package audit

// Event names what happened: noun.verb. The set is closed; a test compares it with docs.
type Event string

// The events.
const (
	OrgCreated        Event = "organization.created"
	SignedIn          Event = "person.signed_in"
	SignInRefused     Event = "person.sign_in_refused"
	SignedOut         Event = "person.signed_out"
	PersonAdded       Event = "person.added"
	PersonInvited     Event = "person.invited"
	PersonJoined      Event = "person.joined"
	PersonRoles       Event = "person.roles_changed"
	PersonDeactivated Event = "person.deactivated"
	PersonReactivated Event = "person.reactivated"
	PasswordSet       Event = "person.password_set"
	TokenCreated      Event = "token.created"
	TokenRevoked      Event = "token.revoked"
	ReleasePublished  Event = "release.published"

	ConnectionInstalled  Event = "connection.installed"
	ConnectionTested     Event = "connection.tested"
	ConnectionRenamed    Event = "connection.renamed"
	ReadRecording        Event = "connection.read_recording"
	CredentialReplaced   Event = "connection.credential_replaced"
	ConnectionDisconnect Event = "connection.disconnected"
	ConnectionRetired    Event = "connection.retired"
	AccessSaved          Event = "connection.access_saved"
	RepositoryRenamed    Event = "connection.repository_renamed" // GitHub calls it otherwise now; its number is the same
	DefinitionHeld       Event = "connection.definition_held"
	DefinitionAccepted   Event = "connection.definition_accepted"
	ReadConfirmed        Event = "connection.read_confirmed"
	ConsentGiven         Event = "connection.consent_given"
	ConsentLost          Event = "connection.consent_lost"
	ScopeRefused         Event = "connection.scope_refused" // the service asks for more than was consented to

	ProfileSaved   Event = "profile.saved"
	ProfileRemoved Event = "profile.removed"
	RunStarted     Event = "run.started"
	RunEnded       Event = "run.ended"
	ToolRead       Event = "tool.read"
	ToolRefused    Event = "tool.refused"
	BlockReported  Event = "run.block_reported"

	ActionStaged    Event = "action.staged"
	ActionApproved  Event = "action.approved"
	ActionDenied    Event = "action.denied"
	ActionExpired   Event = "action.expired"
	ActionCancelled Event = "action.cancelled"
	ActionExecuting Event = "action.executing"
	ActionSucceeded Event = "action.succeeded"
	ActionFailed    Event = "action.failed"
	ActionUncertain Event = "action.uncertain"
	ActionResolved  Event = "action.resolved" // out of uncertain, by a person, a reconciler or late evidence

	SignatureGiven Event = "signature.given" // by one of several people who are asked; with the last one's the action is approved
	GroupSaved     Event = "group.saved"
	GroupRemoved   Event = "group.removed"

	ContextSaved Event = "context.saved" // a revision of preferences.toml

	LookedUp Event = "look_up.made" // a read to find out what became of an uncertain action

	FreezeOn  Event = "freeze.on"
	FreezeOff Event = "freeze.off"
)
