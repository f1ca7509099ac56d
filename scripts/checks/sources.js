// The TypeScript files of the project, for checks that read them. CommonJS: tests read it too.
const { readdirSync } = require('node:fs');
const path = require('node:path');

const root = path.join(__dirname, '../..');
const NO_SOURCE = ['node_modules', 'dist', 'tests', 'docs', 'scripts', 'bin'];

/** Paths from the root, sorted. Tests, scripts and built files are not among them. */
exports.sourceFiles = () =>
  readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.') && !NO_SOURCE.includes(name))
    .flatMap((entry) =>
      entry.isFile()
        ? [entry.name]
        : readdirSync(path.join(root, entry.name), { withFileTypes: true, recursive: true })
            .filter((file) => file.isFile())
            .map((file) => path.relative(root, path.join(file.parentPath, file.name))),
    )
    .filter((file) => /\.tsx?$/.test(file))
    .sort();
