/** A labelled line of text or a password. */
interface FieldProps {
  readonly name: string;
  readonly title: string;
  readonly type: 'text' | 'password';
  readonly needed?: boolean;
  readonly initial?: string;
  readonly autocomplete?: string;
}
export const Field = ({ name, title, type, needed = false, initial = '', autocomplete = 'off' }: FieldProps) => {
  const common = { name, required: needed, defaultValue: initial, autocomplete };
  return (
    <label>
      {title}
      {type === 'password' ? <input type="password" {...common} /> : <input {...common} />}
    </label>
  );
};
