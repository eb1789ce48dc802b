// map-cases.ts: `map --test`: runs the cases of presets and configs (mapping/cases/cases.ts) and prints
// differences.
//
//   config/presets/owntracks.cases.yaml: 17 passed
//   fleet.cases.yaml: 1 of 4 failed
//     a truck that drives
//       payload 1: gps.speed is 65, expected 64.
//
// X.cases.yaml and X.PART.cases.yaml test the preset X.yaml in the same folder; where there is none, or it is
// the config, they test the config. Without files the command runs all cases beside the config that test it,
// and those of its presets.

import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { systemClock } from '../../std/clock.ts'
import { GatewayError, unreadable } from '../../std/gateway-error.ts'
import { loadCases, loadConfig, loadPresetCases, testedBy, type LoadedConfig } from '../../config/config.ts'
import { providerNames } from '../../delivery/config.ts'
import { loadDevices, runCases, type CaseResult } from '../../mapping/mapping.ts'
import { reportError } from '../terminal/error-report.ts'
import type { CommandIo, ExitStatus } from '../terminal/terminal.ts'
import { plainFiles, type ReadFiles } from './map-watch.ts'
import { textOfLines } from '../../std/text-table/text-lines.ts'

const casesEnd = '.cases.yaml'

/** Exit status 0 when every case passed, 1 when one failed, 2 when a file is invalid. Rejects with USAGE. */
export async function testMapping(
  io: CommandIo,
  files: readonly string[],
  { config: configPath }: { config?: string | undefined },
  readFiles: ReadFiles = plainFiles,
): Promise<ExitStatus> {
  const deps = { env: io.env, readFile: readFiles.readText }
  const loaded = configPath === undefined ? null : await loadConfig(configPath, deps)
  const run = createRunner(io, loaded, readFiles)
  const chosen = files.length > 0 ? files.map(checkedName) : await casesOf(loaded)
  let status: ExitStatus = 0
  for (const file of chosen) {
    if (io.stop.aborted) break
    try {
      const results = await run(file)
      io.stdout.write(reportOf(file, results))
      if (status === 0 && results.some(({ passed }) => !passed)) status = 1
    } catch (error) {
      // The remaining files are still run.
      const ended = reportError(error, io.stderr, { json: false, env: io.env })
      if (status !== 2) status = ended
    }
  }
  return status
}

/** Runs the cases of one file. */
function createRunner(io: CommandIo, loaded: LoadedConfig | null, readFiles: ReadFiles) {
  const deps = { env: io.env, readText: (path: string) => readCases(path, readFiles) }
  const providers = loaded === null ? [] : providerNames(loaded.config.delivery)
  const times = { nowMs: systemClock.now() }
  return async (file: string): Promise<CaseResult[]> => {
    if (testsPreset(file, loaded)) {
      const { cases, mapping } = await loadPresetCases(file, deps)
      return runCases(cases, { mapping, ...times })
    }
    if (loaded === null) throw noConfig(file)
    const cases = await loadCases(file, deps)
    const { file: path } = loaded.config.devices
    const read = {
      async readFile(name: string) {
        await readFiles.willRead(name)
        return readFile(name)
      },
    }
    const devices =
      path === undefined
        ? {}
        : {
            devices: await loadDevices(read, {
              path,
              providers,
              profiles: Object.keys(loaded.config.privacy.profiles),
            }),
          }
    return runCases(cases, { mapping: loaded.config, providers, ...times, ...devices })
  }
}

function testsPreset(file: string, loaded: LoadedConfig | null): boolean {
  const preset = testedBy(file)
  return preset !== undefined && (loaded === null || resolve(loaded.path) !== preset)
}

async function casesIn(folder: string): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(casesEnd))
  return names.sort().map((name) => join(folder, name))
}

async function casesOf(loaded: LoadedConfig | null): Promise<string[]> {
  if (loaded === null) throw noConfig(null)
  const ofConfig = (await casesIn(dirname(loaded.path))).filter((file) => !testsPreset(file, loaded))
  const ofPresets = loaded.presetFiles.map(async (preset) =>
    (await casesIn(dirname(preset))).filter((file) => testedBy(file) === resolve(preset)),
  )
  const all = [...ofConfig, ...(await Promise.all(ofPresets)).flat()]
  if (all.length > 0) return all
  throw new GatewayError('USAGE', {
    what: `There are no cases for ${loaded.path}.`,
    why: `No file *${casesEnd} for it is in its folder or in the folders of its presets.`,
    act: `Write one; config/presets has examples. Or give a file: map --test FILE${casesEnd}.`,
  })
}

function reportOf(file: string, results: readonly CaseResult[]): string {
  const failures = results.filter(({ passed }) => !passed)
  if (failures.length === 0) return `${file}: ${results.length} passed\n`
  return textOfLines([
    `${file}: ${failures.length} of ${results.length} failed`,
    ...failures.flatMap(({ name, diff }) => [`  ${name}`, ...diff.map((line) => `    ${line}`)]),
  ])
}

/** Reads cases, and presets beside them; loadPresetCases reports a problem with a preset itself. */
async function readCases(path: string, { readText }: ReadFiles): Promise<string> {
  try {
    return await readText(path)
  } catch (error) {
    if (!path.endsWith(casesEnd)) throw error
    throw unreadable(`the cases ${path}`, error, `Give files whose names end in ${casesEnd}.`)
  }
}

function checkedName(file: string): string {
  if (file.endsWith(casesEnd)) return file
  throw new GatewayError('USAGE', {
    what: `${file} is not a file of cases.`,
    why: `Its name does not end in ${casesEnd}.`,
    act: 'With --test, give such files, or no file to run the cases of the config.',
  })
}

function noConfig(file: string | null): GatewayError {
  if (file === null)
    return new GatewayError('USAGE', {
      what: 'There is nothing to test.',
      why: 'Neither files nor a config are given.',
      act: 'Give the config with --config.',
    })
  return new GatewayError('USAGE', {
    what: `${file} tests a config, and none is given.`,
    why: 'No preset of the same name is in its folder.',
    act: 'Give the config with --config.',
  })
}
