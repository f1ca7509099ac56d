/** What a machine said on its serial line, as text for people: without the sequences that move a terminal's cursor or change its colours. */

/** ECMA-48: control sequences, the strings of OSC, DCS, SOS, PM and APC, and escape sequences of two and three characters. */
// oxlint-disable-next-line no-control-regex
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\n\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/][0-~]|[0-Z\\`-~])/g;
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Firmware ends a line with both characters, and some programs send more of the first. */
export const plainConsoleText = (text: string): string =>
  text.replace(SEQUENCES, '').replace(/\r+/g, '\r').replace(/\r\n/g, '\n').replace(/\r/g, '\n').replace(CONTROLS, '');
