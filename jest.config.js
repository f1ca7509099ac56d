/**
 * Levels: unit (tables, codecs), flows (the whole server on its own database), hostile (attacks on the built server), long (test files of
 * these levels that take long), lab, reference and openstack (the real counterparts).
 */
const { availableParallelism } = require('node:os');
const path = require('node:path');
const longFiles = require('./tests/support/jest/long-files');

const shared = {
  rootDir: __dirname,
  testEnvironment: 'node',
  cacheDirectory: '<rootDir>/.cache/jest',
  runtime: path.join(__dirname, 'tests/support/jest/runtime.js'),
  transform: { '^.+\\.ts$': ['@swc/jest', { jsc: { parser: { syntax: 'typescript' }, target: 'es2023' }, module: { type: 'commonjs' } }] },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cache/'],
};
/**
 * One database server for a run of these projects. Each test file that asks for a database gets its own (tests/support/database.ts), and each
 * test file has a temporary folder of its own.
 */
const contained = {
  globalSetup: '<rootDir>/tests/support/jest/setup.ts',
  globalTeardown: '<rootDir>/tests/support/jest/teardown.ts',
  testEnvironment: '<rootDir>/tests/support/jest/environment.js',
};
/** Without the files of the level `long`. */
const short = { ...shared, ...contained, testPathIgnorePatterns: longFiles };
/** @param {string} name */
const room = (name) => `<rootDir>/tests/${name}/**/*.test.ts`;

module.exports = {
  // Only finds tests that never end. A slow test on a busy machine is not a failure.
  testTimeout: 300_000,
  // Tests wait more than they compute, mostly for the database: two workers on two processors leave these idle for a quarter of the time.
  maxWorkers: Math.ceil(availableParallelism() * 1.5),
  testSequencer: path.join(__dirname, 'tests/support/jest/sequencer.js'),
  projects: [
    {
      ...short,
      displayName: 'unit',
      testMatch: [
        '<rootDir>/tests/*.test.ts',
        ...[
          'config',
          'metal3',
          'policy',
          'model',
          'wire',
          'store',
          'drivers',
          'boot',
          'conductor',
          'api',
          'ramdisk-agent',
          'simulator',
          'ui',
        ].map(room),
      ],
    },
    { ...short, displayName: 'flows', testMatch: [room('flows')] },
    { ...short, displayName: 'hostile', testMatch: [room('hostile')] },
    { ...shared, ...contained, displayName: 'long', testMatch: longFiles },
    { ...shared, displayName: 'lab', testMatch: ['lab', 'chaos'].map(room) },
    { ...shared, displayName: 'reference', testMatch: [room('reference')] },
    { ...shared, displayName: 'openstack', testMatch: [room('openstack')] },
  ],
};
