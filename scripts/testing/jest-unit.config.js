/** The unit tests alone, as mutation tests run them (npm run mutate): their runner knows no projects. */
const { projects, ...all } = require('../../jest.config.js');

const unit = projects.find(({ displayName }) => displayName === 'unit');
// With the long ones: they alone test some files.
module.exports = { ...all, ...unit, testPathIgnorePatterns: ['/node_modules/'] };
