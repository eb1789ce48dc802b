// check-command.ts: `check`: finds every problem of a config before the daemon starts; with --connect also
// problems of its surroundings. Exit status 0 valid, 2 the config has problems, 1 a connection has.

import { hostname } from 'node:os'
import { Command } from 'commander'
import { systemClock } from '../../std/clock.ts'
import { formatSize } from '../../std/quantity.ts'
import { visible, visibleJson } from '../../std/quote.ts'
import { certificateWarnings, namesOfCertificate, type Config } from '../../config/config.ts'
import { deliveryOptions, providerNames } from '../../delivery/config.ts'
import { defaultProvider } from '../../domain/ids.ts'
import { addressText, listenUrlText } from '../../ingest/config.ts'
import { receiversOf } from '../alerts-command/config-alerts.ts'
import { opsUrlText } from '../../ops/config.ts'
import { checkConfig, type CheckedConfig } from './config-findings.ts'
import type { Finding } from './connection-findings.ts'
import type { BuildCommand } from '../terminal/terminal.ts'
import { notes } from '../terminal/text-format.ts'

type CheckOptions = { config: string; connect?: boolean; json?: boolean }

export const checkCommand: BuildCommand = (io, done) =>
  new Command('check')
    .requiredOption('--config <file>', 'config to check (required)')
    .option(
      '--connect',
      'also check DNS, connection, certificate, clock, credentials, compression, spool directory, bridges and alerts',
    )
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      notes(
        'Changes nothing and sends no telemetry.',
        'Exit status 1: a check of --connect failed. 2: the config is invalid.',
      ),
    )
    .action(async ({ config: path, connect, json }: CheckOptions) => {
      const { config, warnings: found } = await checkConfig(path, io.env)
      const warnings = [...found, ...certificateWarnings(config, systemClock.now())]
      const summary = summaryOf(config)
      const findings: Finding[] = []
      const several = providerNames(config.delivery).length > 1
      if (!json) io.stdout.write(`${path} is valid.\n${summaryText(summary)}${warningsText(warnings)}`)
      if (connect) {
        // Loaded late: it brings delivery and the credentials package.
        const { checkSurroundings, findingLine } = await import('./connection-findings.ts')
        for await (const finding of checkSurroundings(config, io)) {
          findings.push(finding)
          if (!json) io.stdout.write(`  ${findingLine(finding, several)}`)
        }
      }
      const ok = findings.every(({ state }) => state !== 'failed')
      const answer = { ok, config: summary, warnings, ...(connect && { connect: findings.map(viewOf) }) }
      if (json) io.stdout.write(`${visibleJson(JSON.stringify(answer))}\n`)
      done(ok ? 0 : 1)
    })

/** What the config does, by section. */
function summaryOf(config: Config): Record<string, string[]> {
  const { ingest, sources, devices, spool, delivery, ops } = config
  return {
    listeners: ingest.broker.listeners.map(({ url, tls }) =>
      reachedText(listenUrlText(url), url.host, tls?.cert),
    ),
    access: ingest.broker.listeners.map(({ access }) => accessText(access ?? ingest.broker.access)),
    bridges: ingest.bridges.map(
      (bridge) => `${bridge.name} to ${addressText(bridge)}: ${bridge.topics.join(', ')}`,
    ),
    sources: sources.map(
      ({ name, topic, from }) =>
        `${name} on ${[topic].flat().join(', ')}${from ? `, from ${from.join(', ')}` : ''}`,
    ),
    devices: [
      devices.file === undefined
        ? `no device table; unknown devices: ${devices.unknown}`
        : `${devices.file}; unknown devices: ${devices.unknown}`,
    ],
    delivery: deliveryOptions(delivery).providers.map(deliveryText),
    spool: [
      `${spool.path}, at most ${formatSize(spool.max_bytes)}, keeps ${formatSize(spool.min_free_bytes)} of the disk free`,
    ],
    ops: [
      reachedText(
        opsUrlText(ops.listen, ops.tls === undefined ? 'http' : 'https'),
        ops.listen.host,
        ops.tls?.cert,
      ),
    ],
    alerts: alertsText(config),
  }
}

/** An address for all interfaces is none that a client can write. */
function reachedText(url: string, host: string, certificate: string | undefined): string {
  if (host !== '0.0.0.0' && host !== '::') return url
  const [name] = certificate === undefined ? [] : namesOfCertificate(certificate)
  const known = name ?? hostname()
  const shown = url.replace(host === '::' ? '[::]' : host, known.includes(':') ? `[${known}]` : known)
  const from = name === undefined ? 'a name or address of this machine' : 'a name in its certificate'
  return `${url}, all addresses; clients use ${from}, such as ${shown}`
}

function alertsText(config: Config): string[] {
  return receiversOf(config).map(({ name, type, target, from }) =>
    [`${name}: ${type} to ${target}`, ...(from === null ? [] : [`from ${from}`])].join(', '),
  )
}

function accessText(access: Config['ingest']['broker']['access']): string {
  const { anonymous, certificates, users, password_file, tokens } = access
  const ways = [
    ...(anonymous ? ['anonymous'] : []),
    ...(users.length > 0 || password_file !== undefined ? ['user name and password'] : []),
    ...(tokens.length > 0 ? ['token'] : []),
    ...(certificates ? ['certificate'] : []),
  ]
  return ways.join(', ')
}

function deliveryText(
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
    ...(length > 1 || name !== defaultProvider ? [`provider ${name}`] : []),
    ...(providerKey === null ? [] : [`X-Provider-Key ${providerKey}`]),
    `credentials: ${credentials.source}`,
    ...(mode === 'single' ? ['one payload per request'] : []),
    ...(proxy.from === 'config' ? [`through ${proxy.url}`] : []),
  ]
  return parts.join(', ')
}

function summaryText(summary: Record<string, string[]>): string {
  const rows = Object.entries(summary).flatMap(([name, values]) =>
    values.map((value, index) => `  ${(index === 0 ? name : '').padEnd(10)} ${visible(value)}\n`),
  )
  return rows.join('')
}

function warningsText(warnings: CheckedConfig['warnings']): string {
  return warnings.map(({ what, act }) => `  ${'warning'.padEnd(10)} ${visible(`${what} ${act}`)}\n`).join('')
}

/** `warns`: it can be used, and something about it is not as it should be. */
function viewOf({ state, providers = [], ...finding }: Finding) {
  const warns = state === 'warning' ? { warns: true } : {}
  return { ...finding, ok: state !== 'failed', ...warns, providers }
}
