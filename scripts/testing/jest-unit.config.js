/** The unit tests alone, as mutation tests run them (npm run mutate): their runner knows no projects. */
/** @type {Record<string, unknown> & { projects: { displayName: string }[] }} */
const { projects, ...all } = require('../../jest.config.js');

const unit = projects.find(({ displayName }) => displayName === 'unit');
// Includes the long tests, because some files have no others.
module.exports = { ...all, ...unit, testPathIgnorePatterns: ['/node_modules/'] };
