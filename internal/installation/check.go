package installation

// Check is one step of the way to a service, and what was found there. It never holds a secret, nor an address that a name led to.
type Check struct {
	Step  Step
	Fate  Fate
	Found string // in words
	Next  string // what to do where it fails
}

// Step is a part of the way to a service.
type Step string

// The steps, in the order they are taken.
const (
	StepName       Step = "name"
	StepAddress    Step = "address"
	StepTLS        Step = "tls"
	StepDiscovery  Step = "discovery"
	StepCredential Step = "credential"
	StepList       Step = "list"
	StepCall       Step = "call"
)

// Steps is every step in its order.
var Steps = []Step{StepName, StepAddress, StepTLS, StepDiscovery, StepCredential, StepList, StepCall}

// Fate is what became of a step.
type Fate string

// The fates.
const (
	Holds    Fate = "holds"
	Fails    Fate = "fails"
	Apart    Fate = "apart"     // it is no step of this connection, or cannot be seen from here
	NotTried Fate = "not_tried" // a step before it failed
)
