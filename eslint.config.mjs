import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist/', '.cache/', 'model/fields.ts'] },
  {
    files: ['**/*.ts'],
    extends: [js.configs.recommended, ...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-invalid-void-type': 'off',
      '@typescript-eslint/no-empty-object-type': ['error', { allowInterfaces: 'with-single-extends' }],
      '@typescript-eslint/no-dynamic-delete': 'off',
      '@typescript-eslint/unified-signatures': 'off',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'CallExpression[callee.object.name="AbortSignal"][callee.property.name="any"] [callee.object.name="AbortSignal"]',
          message: 'A timeout inside AbortSignal.any is collected before its time: use timeoutSignal() of wire/timeout-signal.ts.',
        },
      ],
    },
  },
  {
    files: ['**/*.mjs', '**/*.js', 'bin/*'],
    ...js.configs.recommended,
    languageOptions: {
      globals: Object.fromEntries(
        'process console performance setTimeout fetch URL Buffer AbortSignal module require __dirname'
          .split(' ')
          .map((name) => [name, 'writable']),
      ),
    },
  },
);
