package hidden

// Exported is out of reach.
const Exported = 1
