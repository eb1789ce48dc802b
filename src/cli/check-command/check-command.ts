// check-command.ts: `check`: everything that is wrong with a config, before the daemon finds out; with --connect also what
// lies around it. Exit status 0 fine, 2 the config has problems, 1 a connection has.

import { Command } from 'commander'
import { readFile } from 'node:fs/promises'
import { formatSize } from '../../std/quantity.ts'
import { visible } from '../../std/quote.ts'
import { loadConfig, type Config } from '../../config/config.ts'
import { deliveryOptions, providerNames } from '../../delivery/config.ts'
import { defaultProvider } from '../../domain/ids.ts'
import { loadDevices } from '../../mapping/mapping.ts'
import { opsUrl } from '../../ops/config.ts'
import type { Finding } from './connection-findings.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'

type CheckOptions = { config: string; connect?: boolean; json?: boolean }

export function checkCommand(io: CommandIo, done: (status: ExitStatus) => void): Command {
  return new Command('check')
    .description('every problem of the config, with line and column')
    .requiredOption('--config <file>', 'the config to check')
    .option('--connect', 'also name, connection, certificate, clock, credentials and spool directory')
    .option('--json', 'one JSON document')
    .action(async ({ config: path, connect, json }: CheckOptions) => {
      const { config } = await loadConfig(path, { env: io.env })
      await checkDevices(config)
      const summary = summaryOf(config)
      const findings: Finding[] = []
      const several = providerNames(config.delivery).length > 1
      if (!json) io.stdout.write(`${path} is fine.\n${tableOf(summary)}`)
      if (connect) {
        // Loaded only here: it brings delivery along, with the credentials of the cloud provider.
        const { connectChecks } = await import('./connection-findings.ts')
        for await (const finding of connectChecks(config, io)) {
          findings.push(finding)
          if (!json) io.stdout.write(findingText(finding, several))
        }
      }
      const ok = findings.every((finding) => finding.ok)
      if (json)
        io.stdout.write(
          `${JSON.stringify({ ok, config: summary, ...(connect ? { connect: findings } : {}) })}\n`,
        )
      done(ok ? 0 : 1)
    })
}

/** The table as the daemon would read it; rejects with DEVICES_INVALID. */
async function checkDevices({ devices, delivery }: Config): Promise<void> {
  if (devices.file === undefined) return
  const providers = providerNames(delivery)
  await loadDevices({ readFile: (path) => readFile(path) }, { path: devices.file, providers })
}

/** What the config does, in the words of a person. */
function summaryOf(config: Config): Record<string, string[]> {
  const { ingest, sources, devices, spool, delivery, ops } = config
  return {
    listeners: ingest.broker.listeners.map(
      ({ url: { secure, host, port } }) =>
        `${secure ? 'mqtts' : 'mqtt'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ),
    access: [ingest.broker.access.anonymous ? 'anyone who can connect' : 'with user name and password'],
    sources: sources.map(({ name, topic }) => `${name} on ${[topic].flat().join(', ')}`),
    devices: [
      devices.file === undefined
        ? `no table; unknown ones: ${devices.unknown}`
        : `${devices.file}; unknown ones: ${devices.unknown}`,
    ],
    delivers: deliveryOptions(delivery).providers.map(deliversText),
    spool: [
      `${spool.path}, at most ${formatSize(spool.max_bytes)}, leaves ${formatSize(spool.min_free_bytes)} free`,
    ],
    ops: [opsUrl(ops.listen)],
  }
}

function deliversText(
  {
    name,
    baseUrl,
    providerKey,
    credentials,
    mode,
    proxy,
  }: ReturnType<typeof deliveryOptions>['providers'][number],
  _index: number,
  { length }: readonly unknown[],
): string {
  const parts = [
    `to ${baseUrl}`,
    ...(length > 1 || name !== defaultProvider ? [`for ${name}`] : []),
    ...(providerKey === null ? [] : [`as ${providerKey}`]),
    `credentials: ${credentials.source}`,
    ...(mode === 'single' ? ['one payload a request'] : []),
    ...(proxy.from === 'config' ? [`through ${proxy.url}`] : []),
  ]
  return parts.join(', ')
}

function tableOf(summary: Record<string, string[]>): string {
  const rows = Object.entries(summary).flatMap(([name, values]) =>
    values.map((value, index) => `  ${(index === 0 ? name : '').padEnd(10)} ${visible(value)}\n`),
  )
  return rows.join('')
}

function findingText({ name, ok, what, why, act, providers }: Finding, several: boolean): string {
  const whose = several && providers.length > 0 ? `${providers.join(', ')}: ` : ''
  const more = [why, act]
    .filter((text) => text !== undefined)
    .map((text) => `         ${' '.repeat(12)} ${visible(text)}\n`)
  return `  ${ok ? 'ok    ' : 'failed'} ${name.padEnd(12)} ${visible(whose + what)}\n${more.join('')}`
}
