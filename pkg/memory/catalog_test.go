package memory_test

import (
	"testing"

	"likectl/pkg/memory"
	"likectl/pkg/store/storetest"
)

func TestCatalog(t *testing.T) {
	storetest.RunCatalog(t, func(testing.TB) storetest.Catalog { return storetest.CatalogOfMemory(memory.New()) })
}
