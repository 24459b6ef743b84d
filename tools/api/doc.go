// Api prints the exported API of the packages of a module, a declaration on each line. Fields of structs and methods have
// lines of their own, so a diff shows what has changed. Packages below "internal" and "tests" and programs are left
// out.
//
//	go -C tools run ./api ..
package main
