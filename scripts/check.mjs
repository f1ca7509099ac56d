// Types and lint in one process: the type checker's work, most of what both cost, is done once. For npm test and npm run check.
import { join } from 'node:path';
import { ESLint } from 'eslint';
import ts from 'typescript';

const root = join(import.meta.dirname, '..');
const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (diagnostic) => console.error(ts.formatDiagnostic(diagnostic, names)) };
const names = ts.createCompilerHost({});
const { fileNames, options } = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.json'), { noEmit: true, incremental: false }, host);
const program = ts.createProgram(fileNames, options, ts.createCompilerHost(options, true));
const diagnostics = ts.getPreEmitDiagnostics(program);
if (diagnostics.length > 0) console.error(ts.formatDiagnosticsWithColorAndContext(diagnostics, names));

const eslint = new ESLint({
  cwd: root,
  overrideConfig: { files: ['**/*.ts'], languageOptions: { parserOptions: { projectService: false, programs: [program] } } },
});
const results = await eslint.lintFiles(['.']);
const report = (await eslint.loadFormatter('stylish')).format(results);
if (report) console.error(await report);
const lintFailed = results.some(({ errorCount, warningCount }) => errorCount + warningCount > 0);
process.exit(diagnostics.length > 0 || lintFailed ? 1 : 0);
