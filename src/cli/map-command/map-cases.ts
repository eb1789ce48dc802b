// map-cases.ts: `map --test`: plays the cases of presets and configs (mapping/cases/cases.ts) and tells what differs.
//
//   config/presets/owntracks.cases.yaml: 17 passed
//   fleet.cases.yaml: 1 of 4 failed
//     a truck on the road
//       payload 1: gps.speed is 65, expected 64.
//
// X.cases.yaml tries the preset X.yaml that stands beside it; where none does, or X.yaml is the config, the config.
// Without files these are all cases beside the config that try it, and those of the presets that it names.

import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { codeOf, GatewayError, messageOf } from '../../std/gateway-error.ts'
import { visible } from '../../std/quote.ts'
import { loadCases, loadConfig, loadPresetCases, type LoadedConfig } from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import { runCases, loadDevices, type CaseResult } from '../../mapping/mapping.ts'
import { reportError } from '../terminal/error-report.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'

const casesEnd = '.cases.yaml'

/** Exit status 0 when every case passed, 1 when one failed, 2 when a file is wrong. Rejects with USAGE. */
export async function testMapping(
  io: CommandIo,
  files: readonly string[],
  { config: configPath }: { config?: string | undefined },
): Promise<ExitStatus> {
  const loaded = configPath === undefined ? null : await loadConfig(configPath, { env: io.env })
  const judge = judgeOf(io, loaded)
  const chosen = files.length > 0 ? files.map(checked) : await casesOf(loaded)
  let status: ExitStatus = 0
  for (const file of chosen) {
    if (io.stop.aborted) break
    try {
      const judged = await judge(file)
      io.stdout.write(reportOf(file, judged))
      if (status === 0 && judged.some(({ passed }) => !passed)) status = 1
    } catch (error) {
      // The other files are tried all the same.
      const ended = reportError(error, io.stderr, { json: false })
      if (status !== 2) status = ended
    }
  }
  return status
}

/** Judges the cases of a file; the config and its device table are read once. */
function judgeOf(io: CommandIo, loaded: LoadedConfig | null) {
  const deps = { env: io.env, readText: readCases }
  const providers = loaded === null ? [] : providerNames(loaded.config.delivery)
  const nowMs = systemClock.now()
  return async (file: string): Promise<CaseResult[]> => {
    if (triesPreset(file, loaded)) {
      const { cases, mapping } = await loadPresetCases(file, deps)
      return runCases(cases, { mapping, nowMs, clock: systemClock })
    }
    if (loaded === null) throw noConfig(file)
    const cases = await loadCases(file, deps)
    const { config } = loaded
    const { file: table } = config.devices
    const read = { readFile: (path: string) => readFile(path) }
    const devices =
      table === undefined ? {} : { devices: await loadDevices(read, { path: table, providers }) }
    return runCases(cases, { mapping: config, providers, nowMs, clock: systemClock, ...devices })
  }
}

function triesPreset(file: string, loaded: LoadedConfig | null): boolean {
  const beside = resolve(file.slice(0, -casesEnd.length) + '.yaml')
  return existsSync(beside) && (loaded === null || resolve(loaded.path) !== beside)
}

async function casesOf(loaded: LoadedConfig | null): Promise<string[]> {
  if (loaded === null) throw noConfig(null)
  const folder = dirname(loaded.path)
  const beside = (await readdir(folder))
    .filter((name) => name.endsWith(casesEnd))
    .map((name) => join(folder, name))
    .filter((file) => !triesPreset(file, loaded))
  const ofPresets = loaded.presetFiles
    .map((file) => file.replace(/\.yaml$/, casesEnd))
    .filter((file) => existsSync(file))
  const all = [...beside.sort(), ...ofPresets]
  if (all.length > 0) return all
  throw new GatewayError('USAGE', {
    what: `There are no cases for ${loaded.path}.`,
    why: `No file ending in ${casesEnd} stands beside it, nor beside a preset that it names.`,
    act: `Write some; config/presets has examples. Or name a file: map --test FILE${casesEnd}.`,
  })
}

function reportOf(file: string, judged: readonly CaseResult[]): string {
  const failures = judged.filter(({ passed }) => !passed)
  if (failures.length === 0) return `${file}: ${judged.length} passed\n`
  const lines = failures.flatMap(({ name, diff }) => [
    `  ${visible(name)}\n`,
    ...diff.map((line) => `    ${line}\n`),
  ])
  return `${file}: ${failures.length} of ${judged.length} failed\n${lines.join('')}`
}

/** Presets beside the cases come this way too; what is wrong with them is told by who reads them. */
async function readCases(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (!path.endsWith(casesEnd)) throw error
    throw new GatewayError('INPUT_UNREADABLE', {
      what: `Cannot read the cases ${path}.`,
      why: codeOf(error) === 'ENOENT' ? 'There is no such file.' : `${messageOf(error)}.`,
      act: `Name files ending in ${casesEnd}.`,
      cause: error,
    })
  }
}

function checked(file: string): string {
  if (file.endsWith(casesEnd)) return file
  throw new GatewayError('USAGE', {
    what: `${file} is no file of cases.`,
    why: `Their names end in ${casesEnd}.`,
    act: 'With --test name such files, or none for those of the config.',
  })
}

function noConfig(file: string | null): GatewayError {
  return new GatewayError('USAGE', {
    what: file === null ? 'There is nothing to test.' : `It is not known what ${file} tries.`,
    why: file === null ? 'Neither files nor a config are named.' : 'No preset of its name stands beside it.',
    act: 'Name the config with --config.',
  })
}
