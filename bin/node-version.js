// Ends the process with one line where Node is older than package.json says. In the syntax of old versions, which have to read it.
'use strict';
var needed = require('../package.json').engines.node.replace('>=', '');
var parts = function (version) {
  return version.replace('v', '').split('.').map(Number);
};
var own = parts(process.version);
var least = parts(needed);
var differs = [0, 1, 2].filter(function (index) {
  return own[index] !== least[index];
})[0];
if (differs !== undefined && own[differs] < least[differs]) {
  console.error('bloomery needs Node ' + needed + ' or later, and ' + process.execPath + ' is Node ' + process.version.replace('v', ''));
  process.exit(1);
}
