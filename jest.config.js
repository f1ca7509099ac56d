/** Three levels: unit (tables, codecs), flows (the whole server on its own database), lab and reference (the real counterparts). */
const shared = {
  rootDir: __dirname,
  testEnvironment: 'node',
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'commonjs' } }] },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cache/'],
};
const room = (name) => `<rootDir>/tests/${name}/**/*.test.ts`;

module.exports = {
  projects: [
    {
      ...shared,
      displayName: 'unit',
      testMatch: [
        '<rootDir>/tests/*.test.ts',
        ...['config', 'model', 'wire', 'store', 'drivers', 'boot', 'conductor', 'api', 'ramdisk-agent', 'simulator'].map(room),
      ],
    },
    { ...shared, displayName: 'flows', testMatch: [room('flows')] },
    { ...shared, displayName: 'lab', testMatch: [room('lab')] },
    { ...shared, displayName: 'reference', testMatch: [room('reference')] },
  ],
};
