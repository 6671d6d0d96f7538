package conformance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// envNoHook makes this test binary one whose TestMain forgot the hook.
const envNoHook = "LOCKBENCH_TEST_NO_HOOK"

// TestWithoutHook: a program that does not become a client process gets an error
// that says what it lacks, and its tests are not run a second time.
func TestWithoutHook(t *testing.T) {
	t.Setenv(envNoHook, "1")
	_, err := conformance.Measure(t.Context(), conformance.Subject{Recipe: reference.Recipes()[0],
		Config: impls.Config{Addresses: []string{newReference(t).path}, TTL: time.Second}})
	if err == nil || !strings.Contains(err.Error(), "conformance.MainIfClient(find)") {
		t.Errorf("measured without the hook: %v", err)
	}
}

// TestNotFound: a recipe that the client processes do not find is named.
func TestNotFound(t *testing.T) {
	t.Parallel()
	stranger := mutant{Recipe: reference.Recipes()[0], info: func(i *impls.Info) { i.ID = "unknown/recipe" }}
	_, err := conformance.Measure(t.Context(), conformance.Subject{Recipe: stranger,
		Config: impls.Config{Addresses: []string{newReference(t).path}, TTL: time.Second}})
	if err == nil || !strings.Contains(err.Error(), `"unknown/recipe"`) {
		t.Errorf("measured what its processes do not find: %v", err)
	}
}
