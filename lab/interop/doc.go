// Package interop is a process that locks with holdfast as it is told to, in lines of text; its twin in Java, in the
// directory java, does the same with Redisson. The tests of the package let both contend for the same locks. They need
// java and mvn, and are run by make -C lab interop.
package interop
