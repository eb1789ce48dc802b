// manual-page.ts: telemetry-gateway(1) in roff, from the commands and their options.

import { leavesOf, type CommandHelp } from './command-tree.ts'

/** `date`: seconds since 1970. */
export function manualPage(tree: CommandHelp, { version, date }: { version: string; date: number }): string {
  const day = new Date(date * 1000).toISOString().slice(0, 10)
  const lines = [
    `.TH TELEMETRY-GATEWAY 1 "${day}" "telemetry-gateway ${escaped(version)}" "User Commands"`,
    '.SH NAME',
    'telemetry-gateway \\- receive telemetry over MQTT, deliver it in signed batches',
    '.SH SYNOPSIS',
    '.B telemetry\\-gateway',
    '.I command',
    '.RI [ options ]',
    '.SH DESCRIPTION',
    escaped(tree.summary),
    '.PP',
    'A first config:',
    '.B telemetry\\-gateway init\\fR.',
    'The state of the daemon:',
    '.B telemetry\\-gateway status\\fR.',
    'What is wrong on this machine:',
    '.B telemetry\\-gateway doctor\\fR.',
    '.SH COMMANDS',
    ...leavesOf(tree).flatMap(commandLines),
    '.SH EXIT STATUS',
    ...['0', 'Success.', '1', 'Failure.', '2', 'Wrong usage or invalid config.'].flatMap((text, index) =>
      index % 2 === 0 ? ['.TP', `.B ${text}`] : [text],
    ),
    '.SH FILES',
    ...Object.entries(files).flatMap(([path, what]) => ['.TP', `.I ${escaped(path)}`, escaped(what)]),
    '.SH SEE ALSO',
    '.BR systemctl (1),',
    '.BR journalctl (1)',
  ]
  return `${lines.join('\n')}\n`
}

const files: Record<string, string> = {
  '/etc/telemetry-gateway/gateway.yaml': 'The config.',
  '/etc/telemetry-gateway/devices.csv': 'The device table.',
  '/etc/telemetry-gateway/users': 'User names and hashes of passwords of devices.',
  '/etc/telemetry-gateway/ingestion.json':
    'The keys of the ingestion API. The service does not start while it is empty.',
  '/var/lib/telemetry-gateway/spool': 'Acknowledged data that is not delivered yet. Never delete it by hand.',
  '/run/telemetry-gateway/control.sock': 'The socket on which commands change something.',
  '/usr/share/doc/telemetry-gateway': 'The documentation, with all options of the config in reference.md.',
}

function commandLines({ path, summary, usage, options, notes }: CommandHelp): string[] {
  return [
    `.SS "${escaped(path)}"`,
    escaped(summary),
    '.PP',
    `.I ${escaped(usage)}`,
    ...options.flatMap(({ term, description }) => ['.TP', `.B ${escaped(term)}`, escaped(description)]),
    ...(notes.length === 0 ? [] : ['.PP', '.nf', ...notes.map(escaped), '.fi']),
  ]
}

/** A hyphen would be typeset as a dash; a point or an apostrophe at the start of a line is a request. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^[.']/, '\\&$&')
    .replaceAll('"', '\\(dq')
}
