// Answers each line of standard input, a JSON object with "template" and either "data" (values for the template) or
// "chat" (what Ollama gives to a template), with a JSON object with "text" or "error".
//
// The types and the order of steps are those of Ollama's template/template.go and api/types.go.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"
	"text/template/parse"
	"time"
)

type propertyType []string

func (t *propertyType) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = propertyType{one}
		return nil
	}
	var many []string
	err := json.Unmarshal(data, &many)
	*t = many
	return err
}

func (t propertyType) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

func (t propertyType) String() string {
	switch len(t) {
	case 0:
		return ""
	case 1:
		return t[0]
	}
	return fmt.Sprintf("%v", []string(t))
}

// ordered is a map that keeps the order of its keys in JSON.
type ordered struct {
	keys   []string
	values map[string]property
}

func (o *ordered) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	o.values = map[string]property{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		var value property
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		o.keys = append(o.keys, key.(string))
		o.values[key.(string)] = value
	}
	return nil
}

func (o ordered) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	for number, key := range o.keys {
		name, _ := json.Marshal(key)
		value, err := json.Marshal(o.values[key])
		if err != nil {
			return nil, err
		}
		if number > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%s:%s", name, value)
	}
	return []byte("{" + out.String() + "}"), nil
}

type property struct {
	AnyOf       []property   `json:"anyOf,omitempty"`
	Type        propertyType `json:"type,omitempty"`
	Items       any          `json:"items,omitempty"`
	Description string       `json:"description,omitempty"`
	Enum        []any        `json:"enum,omitempty"`
	Properties  *ordered     `json:"properties,omitempty"`
	Required    []string     `json:"required,omitempty"`
}

func (p property) ToTypeScriptType() string {
	var types []string
	for _, each := range p.AnyOf {
		types = append(types, each.ToTypeScriptType())
	}
	if len(types) > 0 {
		return strings.Join(types, " | ")
	}
	names := map[string]string{"string": "string", "number": "number", "integer": "number", "boolean": "boolean",
		"array": "any[]", "object": "Record<string, any>", "null": "null"}
	for _, each := range p.Type {
		if name, ok := names[each]; ok {
			types = append(types, name)
		} else {
			types = append(types, "any")
		}
	}
	if len(types) == 0 {
		return "any"
	}
	return strings.Join(types, " | ")
}

type properties map[string]property

func (p properties) String() string { return text(p, p == nil) }

type arguments map[string]any

func (a arguments) String() string { return text(a, a == nil) }

func text(value any, isNil bool) string {
	if isNil {
		return "{}"
	}
	return toJSON(value)
}

// toJSON writes a backspace as \b and a form feed as \f, as Go does since 1.22, where older ones write their numbers. It is
// done here and not in the text that a template gives, of which a template may have counted the bytes.
func toJSON(value any) string {
	out, _ := json.Marshal(value)
	return escapes.ReplaceAllStringFunc(string(out), func(found string) string {
		switch found {
		case `\u0008`:
			return `\b`
		case `\u000c`:
			return `\f`
		}
		return found
	})
}

var escapes = regexp.MustCompile(`\\(u[0-9a-f]{4}|.)`)

type tool struct {
	Type     string   `json:"type"`
	Items    any      `json:"items,omitempty"`
	Function function `json:"function"`
}

func (t tool) String() string { return toJSON(t) }

type function struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Parameters  parameters `json:"parameters"`
}

type parameters struct {
	Type       string     `json:"type"`
	Defs       any        `json:"$defs,omitempty"`
	Items      any        `json:"items,omitempty"`
	Required   []string   `json:"required,omitempty"`
	Properties properties `json:"properties"`
}

type tools []tool

func (t tools) String() string { return toJSON(t) }

// Fields have no names in JSON when a template writes them, so requests are read by another type.
type call struct {
	ID       string
	Function struct {
		Index     int
		Name      string
		Arguments arguments
	}
}

type message struct {
	Role       string
	Content    string
	Thinking   string
	Images     [][]byte
	ToolCalls  []call
	ToolName   string
	ToolCallID string
}

type given struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Thinking  string `json:"thinking"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Function struct {
			Index     int       `json:"index"`
			Name      string    `json:"name"`
			Arguments arguments `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolName   string `json:"tool_name"`
	ToolCallID string `json:"tool_call_id"`
}

type chat struct {
	Messages []given `json:"messages"`
	Tools    tools   `json:"tools"`
	Think    any     `json:"think"`
	Prompt   string  `json:"prompt"`
	Suffix   string  `json:"suffix"`
}

var functions = template.FuncMap{
	"json":          toJSON,
	"currentDate":   func(...string) string { return time.Now().Format("2006-01-02") },
	"yesterdayDate": func(...string) string { return time.Now().AddDate(0, 0, -1).Format("2006-01-02") },
	"toTypeScriptType": func(value any) string {
		if found, ok := value.(property); ok {
			return found.ToTypeScriptType()
		}
		return "any"
	},
}

// names returns the identifiers that Ollama finds in a template, in lower case.
func names(node parse.Node, found map[string]bool) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, each := range n.Nodes {
			if err := names(each, found); err != nil {
				return err
			}
		}
	case *parse.TemplateNode:
		if n.Pipe == nil {
			return fmt.Errorf("undefined template specified")
		}
		return names(n.Pipe, found)
	case *parse.ActionNode:
		return names(n.Pipe, found)
	case *parse.IfNode:
		return branchNames(&n.BranchNode, found)
	case *parse.WithNode:
		return branchNames(&n.BranchNode, found)
	case *parse.RangeNode:
		return branchNames(&n.BranchNode, found)
	case *parse.PipeNode:
		for _, command := range n.Cmds {
			for _, each := range command.Args {
				if err := names(each, found); err != nil {
					return err
				}
			}
		}
	case *parse.FieldNode:
		for _, name := range n.Ident {
			found[strings.ToLower(name)] = true
		}
	case *parse.VariableNode:
		for _, name := range n.Ident {
			found[strings.ToLower(name)] = true
		}
	}
	return nil
}

func branchNames(n *parse.BranchNode, found map[string]bool) error {
	for _, each := range []parse.Node{n.Pipe, n.List, n.ElseList} {
		if err := names(each, found); err != nil {
			return err
		}
	}
	return nil
}

// cutter leaves out what stands after the first use of .Response. It panics where Ollama does.
type cutter struct{ found bool }

func (c *cutter) drops(node parse.Node) bool {
	if field, ok := node.(*parse.FieldNode); ok {
		for _, name := range field.Ident {
			if name == "Response" {
				c.found = true
				return false
			}
		}
	}
	return c.found
}

func (c *cutter) list(list *parse.ListNode) *parse.ListNode {
	if c.drops(list) {
		panic("a branch after .Response")
	}
	var kept []parse.Node
	for _, each := range list.Nodes {
		if c.keeps(each) {
			kept = append(kept, each)
		}
	}
	list.Nodes = kept
	return list
}

func (c *cutter) branch(n *parse.BranchNode) {
	n.List = c.list(n.List)
	if n.ElseList != nil {
		n.ElseList = c.list(n.ElseList)
	}
}

func (c *cutter) keeps(node parse.Node) bool {
	if c.drops(node) {
		return false
	}
	switch n := node.(type) {
	case *parse.IfNode:
		c.branch(&n.BranchNode)
	case *parse.WithNode:
		c.branch(&n.BranchNode)
	case *parse.RangeNode:
		c.branch(&n.BranchNode)
	case *parse.ActionNode:
		return c.keeps(n.Pipe)
	case *parse.PipeNode:
		var commands []*parse.CommandNode
		for _, command := range n.Cmds {
			var args []parse.Node
			for _, each := range command.Args {
				if c.keeps(each) {
					args = append(args, each)
				}
			}
			if len(args) == 0 {
				return false
			}
			command.Args = args
			commands = append(commands, command)
		}
		n.Cmds = commands
	}
	return true
}

func parsed(source string) (*template.Template, map[string]bool, error) {
	t, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(source)
	if err != nil {
		return nil, nil, err
	}
	found := map[string]bool{}
	for _, each := range t.Templates() {
		if err := names(each.Root, found); err != nil {
			return nil, nil, err
		}
	}
	if !found["messages"] && !found["response"] {
		field := &parse.FieldNode{NodeType: parse.NodeField, Ident: []string{"Response"}}
		command := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{field}}
		pipe := &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{command}}
		t.Tree.Root.Nodes = append(t.Tree.Root.Nodes, &parse.ActionNode{NodeType: parse.NodeAction, Pipe: pipe})
	}
	return t, found, nil
}

func prompt(source string, c chat) (string, error) {
	t, found, err := parsed(source)
	if err != nil {
		return "", err
	}
	think, level := false, ""
	switch v := c.Think.(type) {
	case bool:
		think = v
		if v {
			level = "medium"
		}
	case string:
		think, level = true, v
	}
	values := func(more map[string]any) map[string]any {
		more["Think"], more["ThinkLevel"], more["IsThinkSet"] = think, level, c.Think != nil
		return more
	}
	var out bytes.Buffer
	if c.Prompt != "" && c.Suffix != "" {
		err := t.Execute(&out, values(map[string]any{"Prompt": c.Prompt, "Suffix": c.Suffix, "Response": ""}))
		return out.String(), err
	}
	var system []string
	var messages []*message
	for _, each := range c.Messages {
		role := strings.ToLower(each.Role)
		if role == "system" {
			system = append(system, each.Content)
		}
		if last := len(messages) - 1; last >= 0 && messages[last].Role == role && role != "tool" {
			messages[last].Content += "\n\n" + each.Content
			continue
		}
		made := &message{Role: role, Content: each.Content, Thinking: each.Thinking, ToolName: each.ToolName, ToolCallID: each.ToolCallID}
		for _, old := range each.ToolCalls {
			var made_call call
			made_call.ID = old.ID
			made_call.Function.Index, made_call.Function.Name = old.Function.Index, old.Function.Name
			made_call.Function.Arguments = old.Function.Arguments
			made.ToolCalls = append(made.ToolCalls, made_call)
		}
		messages = append(messages, made)
	}
	if found["messages"] {
		err := t.Execute(&out, values(map[string]any{
			"System": strings.Join(system, "\n\n"), "Messages": messages, "Tools": c.Tools, "Response": ""}))
		return out.String(), err
	}
	turn := map[string]any{"System": "", "Prompt": "", "Response": ""}
	flush := func() error {
		err := t.Execute(&out, values(turn))
		turn = map[string]any{"System": "", "Prompt": "", "Response": ""}
		return err
	}
	for _, each := range messages {
		full := each.Role == "system" && (turn["Prompt"] != "" || turn["Response"] != "")
		if full || (each.Role == "user" && turn["Response"] != "") {
			if err := flush(); err != nil {
				return "", err
			}
		}
		if key, ok := map[string]string{"system": "System", "user": "Prompt", "assistant": "Response"}[each.Role]; ok {
			turn[key] = each.Content
		}
	}
	tree := &parse.Tree{Root: new(cutter).list(t.Root.CopyList())}
	last := template.Must(template.New("").AddParseTree("", tree))
	err = last.Execute(&out, values(turn))
	return out.String(), err
}

// typed returns numbers as Go would have them in source: int without a point, float64 with one.
func typed(value any) any {
	switch v := value.(type) {
	case json.Number:
		if number, err := v.Int64(); err == nil {
			return int(number)
		}
		number, _ := v.Float64()
		return number
	case []any:
		for i := range v {
			v[i] = typed(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = typed(v[key])
		}
	}
	return value
}

func answer(line []byte) (out string, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v", problem)
		}
	}()
	var asked struct {
		Template string          `json:"template"`
		Data     json.RawMessage `json:"data"`
		Chat     *chat           `json:"chat"`
	}
	if err := json.Unmarshal(line, &asked); err != nil {
		return "", fmt.Errorf("not a case: %v", err)
	}
	if asked.Chat != nil {
		return prompt(asked.Template, *asked.Chat)
	}
	var data any
	decoder := json.NewDecoder(bytes.NewReader(asked.Data))
	decoder.UseNumber()
	if err := decoder.Decode(&data); err != nil {
		return "", fmt.Errorf("not a case: %v", err)
	}
	t, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(asked.Template)
	if err != nil {
		return "", err
	}
	var written bytes.Buffer
	err = t.Execute(&written, typed(data))
	return written.String(), err
}

func main() {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			text, problem := answer(line)
			if problem != nil {
				encoder.Encode(map[string]string{"error": problem.Error()})
			} else {
				encoder.Encode(map[string]string{"text": text})
			}
		}
		if err != nil {
			return
		}
	}
}
