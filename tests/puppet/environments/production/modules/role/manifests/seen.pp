# A value, for the catalog to show.
define role::seen (Any $value) {
}
