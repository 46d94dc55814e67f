// Package questions owns a small MCP server beside the agent: one tool, with which an agent asks the person at its client a short form and gets
// typed answers, or that the person declined. It asks through elicitation alone, never for a secret, keeps nothing, sends nothing anywhere else,
// and no answer it brings is an approval.
package questions
