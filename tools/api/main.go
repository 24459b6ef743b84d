package main

import (
	"fmt"
	"go/types"
	"log"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: api module-folder")
	}
	lines, err := describe(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(lines, "\n"))
}

// describe returns the lines of the module in a folder, sorted within each package.
func describe(dir string) (lines []string, err error) {
	config := &packages.Config{
		// Without NeedDeps, types are read from the build cache. With it, all dependencies would be type-checked each time.
		Mode: packages.NeedName | packages.NeedTypes,
		Dir:  dir, Env: append(os.Environ(), "GOWORK=off"),
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(loaded, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		if p.Name == "main" || private(p.PkgPath) {
			continue
		}
		of := declarations{pkg: p.Types}
		of.all()
		slices.Sort(of.lines)
		lines = append(append(lines, "package "+p.PkgPath), of.lines...)
	}
	return lines, nil
}

// private reports whether a package is not for users: packages below "internal" and "tests".
func private(path string) bool {
	folders := strings.Split(path, "/")
	return slices.Contains(folders, "internal") || slices.Contains(folders, "tests")
}

// declarations are the declarations of one package.
type declarations struct {
	pkg   *types.Package
	lines []string
}

func (d *declarations) add(format string, args ...any) {
	d.lines = append(d.lines, "\t"+fmt.Sprintf(format, args...))
}

// all adds each exported name of the package.
func (d *declarations) all() {
	for _, name := range d.pkg.Scope().Names() {
		object := d.pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		switch o := object.(type) {
		case *types.Const:
			d.add("const %s %s = %s", name, d.text(o.Type()), o.Val())
		case *types.TypeName:
			d.addType(o)
		default:
			d.add("%s", types.ObjectString(object, d.name))
		}
	}
}

// addType adds a type with its fields and methods.
func (d *declarations) addType(o *types.TypeName) {
	if o.IsAlias() {
		target := types.Unalias(o.Type())
		d.add("type %s = %s", o.Name(), d.text(target))
		// For a package that users cannot import, the names are the alias's.
		if named, ok := target.(*types.Named); !ok || named.Obj().Pkg() == nil || !private(named.Obj().Pkg().Path()) {
			return
		}
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		d.add("type %s struct", o.Name())
		for field := range under.Fields() {
			if field.Exported() {
				d.add("type %s struct: %s %s", o.Name(), field.Name(), d.text(field.Type()))
			}
		}
	case *types.Interface:
		d.addInterface(o.Name(), under)
		return
	default:
		d.add("type %s %s", o.Name(), d.text(under))
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	for selection := range methods.Methods() {
		if selection.Obj().Exported() {
			d.add("%s", types.SelectionString(selection, d.name))
		}
	}
}

// addInterface adds the methods of an interface. One that only this package can implement is sealed.
func (d *declarations) addInterface(name string, i *types.Interface) {
	sealed := ""
	for method := range i.Methods() {
		if !method.Exported() {
			sealed = ", sealed"
			continue
		}
		d.add("type %s interface: %s%s", name, method.Name(), strings.TrimPrefix(d.text(method.Type()), "func"))
	}
	d.add("type %s interface%s", name, sealed)
}

func (d *declarations) text(t types.Type) string { return types.TypeString(t, d.name) }

// name qualifies the names of other packages.
func (d *declarations) name(p *types.Package) string {
	if p == d.pkg {
		return ""
	}
	return p.Name()
}
