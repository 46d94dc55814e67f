package manifest

// Category is the area of the catalog page an integration stands in. The set is closed, so that the page stays short.
type Category string

// The areas, in page order.
const (
	Customers Category = "customers"
	Code      Category = "code"
	Knowledge Category = "knowledge"
	Data      Category = "data"
	Planning  Category = "planning"
	Messages  Category = "messages"
	Hosting   Category = "hosting"
	Own       Category = "own"
)

// Categories lists every area in page order.
var Categories = []Category{Customers, Code, Knowledge, Data, Planning, Messages, Hosting, Own}

var categoryLabels = map[Category]string{
	Customers: "Customers and money", Code: "Code and incidents", Knowledge: "Knowledge and search", Data: "Data",
	Planning: "Plans and documents", Messages: "Messages and meetings", Hosting: "Cloud and hosting", Own: "Your own",
}

// Label is the area in words.
func (c Category) Label() string { return categoryLabels[c] }
