/** Replaces the package koffi in the ramdisk, whose single program has no node_modules: the native module is a file. */
const loaded: { exports: object } = { exports: {} };
process.dlopen(loaded, '/lib/koffi.node');
export default loaded.exports;
