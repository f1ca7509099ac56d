// Ends the process with one line if Node is older than package.json says. Old versions must parse this file, so it has no recent syntax.
'use strict';
const needed = require('../package.json').engines.node.replace('>=', '');
const parts = function (version) {
  return version.replace('v', '').split('.').map(Number);
};
const own = parts(process.version);
const least = parts(needed);
const differs = [0, 1, 2].filter(function (index) {
  return own[index] !== least[index];
})[0];
if (differs !== undefined && own[differs] < least[differs]) {
  console.error('bloomery needs Node ' + needed + ' or later, and ' + process.execPath + ' is Node ' + process.version.replace('v', ''));
  process.exit(1);
}
