package policy

import (
	"reflect"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/kandev/reclaim/core"
)

// schema is the shape of the facts, taken from their Go type. With it a policy
// that reads a field there is none of does not compile: a misspelled field
// would be undefined, and a denial of something undefined denies nothing.
func schema() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, shape(reflect.TypeFor[core.Facts]()))
	return set
}

func shape(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		// Null has no fields to misspell; what is not null has these.
		return shape(t.Elem())
	case reflect.Struct:
		properties := map[string]any{}
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			properties[name] = shape(t.Field(i).Type)
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": shape(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": shape(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}
