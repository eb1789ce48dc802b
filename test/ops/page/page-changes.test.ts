// Commands to copy: a shell gives the gateway the words that are meant, whatever the name of a device is.

import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { commandOf, quoted } from '../../../src/ops/page/page-changes.ts'

function wordsOf(command: string): string[] {
  const env = { ...process.env, LC_ALL: 'C.UTF-8' }
  const script = `set -- ${command}; printf '%s\\0' "$@"`
  return execFileSync('bash', ['-c', script], { encoding: 'utf8', env }).split('\0').slice(0, -1)
}

const hostile = [
  'anna/phone',
  "it's `id` $(id) \\",
  '=ls',
  '~',
  '\u{202e}evil\u{200b}',
  "\n'\u{1b}[2J\\n",
  '🚚\u{e0041}',
]

test.each(hostile)('%j is one word, and has no character that nobody sees', (name) => {
  expect(quoted(name)).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  expect(wordsOf(commandOf({ action: 'devices/forget', parameters: { device: name } }))).toEqual([
    'telemetry-gateway',
    'devices',
    'forget',
    name,
  ])
})

test.each(['-rf', '--help', '--config=/tmp/other'])('%j is no option', (name) => {
  const command = commandOf({ action: 'devices/forget', parameters: { device: name } })
  expect(wordsOf(command)).toEqual(['telemetry-gateway', 'devices', 'forget', '--', name])
  const drop = commandOf({ action: 'quarantine/drop', parameters: { device: name } })
  expect(wordsOf(drop)).toEqual(['telemetry-gateway', 'quarantine', 'drop', '--device', name, '--yes'])
})

test('an id stands before the options', () => {
  const command = commandOf({ action: 'batches/drop', parameters: { id: 'b-1', discard: 1 } })
  expect(command).toBe('telemetry-gateway batches drop b-1 --discard --yes')
})
