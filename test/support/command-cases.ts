// command-cases.ts: commands as data. A file `*.cases.yaml` has the words, the files, the environment and the input of each
// command, and what it must print and write. A test beside it calls `commandCases` with its folder.

import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { createAuthority } from './certificates.ts'
import { runCli } from './cli-world.ts'
import { newFolder } from './folders.ts'

/** A text is all of the output; of a list each text occurs in it. See `patternOf`. */
const output = z.union([z.string(), z.array(z.string())]).optional()

const common = {
  /** Words; those with blanks in quotes, and those that begin with ./ are files of the case, as in `env`. */
  run: z.union([z.string(), z.array(z.string())]).optional(),
  /** The files that the command finds, by path. Those that YAML cannot write are made, see `madeFiles`. */
  files: z.record(z.string(), z.string()).default({}),
  /** Sections for `config`: those that it does not have itself are written below it. */
  sections: z.record(z.string(), z.string()).default({}),
  env: z.record(z.string(), z.string()).default({}),
  status: z.int().optional(),
}

const caseSchema = z.strictObject({
  ...common,
  name: z.string(),
  /** The text of gateway.yaml. */
  config: z.string().optional(),
  stdin: z.string().optional(),
  stdout: output,
  stderr: output,
  /** What neither stdout nor stderr has. */
  lacks: z.array(z.string()).default([]),
  /** Parts of the JSON document that is printed; of a list one for each line. */
  json: z.unknown().optional(),
  /** Each problem of an invalid config: its place (without the file, where it is gateway.yaml) and its text. */
  problems: z.array(z.string()).optional(),
  /** What files have after the command; null where there must be none. */
  written: z.record(z.string(), z.union([z.string(), z.array(z.string()), z.null()])).default({}),
})

const fileSchema = z.strictObject({ ...common, cases: z.array(caseSchema) })

type CommandCase = z.infer<typeof caseSchema>

/** Runs the cases of all files `*.cases.yaml` in a folder and below it. */
export function commandCases(folder: string): void {
  describe.each(globSync('**/*.cases.yaml', { cwd: folder }).toSorted())('%s', (name) => {
    const { cases, ...all } = fileSchema.parse(
      parse(readFileSync(join(folder, name), 'utf8'), { merge: true }),
    )
    const merged = cases.map((one) => ({
      ...one,
      run: one.run ?? all.run,
      status: one.status ?? all.status ?? (one.problems === undefined ? 0 : 2),
      files: { ...all.files, ...one.files },
      sections: { ...all.sections, ...one.sections },
      env: { ...all.env, ...one.env },
    }))
    test.each(merged)('$name', check)
  })
}

async function check(one: CommandCase): Promise<void> {
  const folder = await newFolder()
  const { config, sections, files } = one
  const all = config === undefined ? files : { 'gateway.yaml': withSections(config, sections), ...files }
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), madeFiles()[text] ?? text, { mode: 0o600 })
  }
  const words = wordsOf(one.run ?? []).map((word) => word.replace(/^\.\//, `${folder}/`))
  const placed = Object.entries(one.env).map(([name, value]) => [name, value.replace(/^\.\//, `${folder}/`)])
  const env = Object.fromEntries(placed) as Record<string, string>
  const ran = await runCli(words, { env, stdin: madeFiles()[one.stdin ?? ''] ?? one.stdin ?? '' })
  const stdout = ran.stdout.replaceAll(`${folder}/`, '')
  const stderr = ran.stderr.replaceAll(`${folder}/`, '')
  expect(ran.status, stderr).toBe(one.status)
  if (one.problems !== undefined) expectProblems(problemsIn(stderr), one.problems)
  expectText(stdout, one.stdout)
  expectText(stderr, one.stderr)
  for (const text of one.lacks) expect(stdout + stderr).not.toMatch(patternOf(text))
  expect(documentsIn(stdout, one.json)).toMatchObject(expected(one.json))
  for (const [name, text] of Object.entries(one.written)) {
    const path = join(folder, name)
    expect(existsSync(path), name).toBe(text !== null)
    expectText(text === null ? '' : await readFile(path, 'utf8'), text ?? '')
  }
}

function withSections(config: string, sections: CommandCase['sections']): string {
  const missing = Object.entries(sections).filter(([name]) => !new RegExp(`^${name}:`, 'm').test(config))
  return [config, ...missing.map(([name, text]) => `${name}: ${text}`)].join('\n')
}

function wordsOf(run: string | readonly string[]): string[] {
  if (typeof run !== 'string') return [...run]
  return [...run.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, bare]) => one ?? two ?? bare ?? '')
}

function problemsIn(stderr: string): string[] {
  const { error } = JSON.parse(stderr) as {
    error: { problems: { file?: string; line: number; column: number; message: string }[] }
  }
  return error.problems.map(({ file, line, column, message }) => {
    const place = file === undefined || file === 'gateway.yaml' ? '' : `${file}:`
    return `${place}${line}:${column} ${message}`
  })
}

/** `/a.c/` is a pattern; in other texts `…` stands for anything within a line. */
function patternOf(text: string): RegExp {
  const [, pattern] = /^\/([^]+)\/$/.exec(text) ?? []
  return new RegExp(pattern ?? text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*'), 'm')
}

/** Each is given whole, in the order of the file. */
function expectProblems(found: readonly string[], problems: readonly string[]): void {
  const isAsGiven = (text: string, index: number) => {
    const given = problems[index] ?? ''
    return (given.startsWith('/') ? patternOf(given) : new RegExp(`^${patternOf(given).source}$`)).test(text)
  }
  expect(found.map((text, index) => (isAsGiven(text, index) ? problems[index] : text))).toEqual(problems)
}

function expectText(found: string, text: string | readonly string[] | undefined): void {
  if (typeof text === 'string') expect(found).toBe(text)
  else for (const part of text ?? []) expect(found).toMatch(patternOf(part))
}

/** The JSON documents that are printed: all of them for a list, else the first one. */
function documentsIn(stdout: string, wanted: unknown): object {
  if (wanted === undefined) return {}
  const documents = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as object)
  return Array.isArray(wanted) ? documents : (documents[0] ?? {})
}

/** Texts with patterns or `…` are matched, all other values are equal. */
function expected(wanted: unknown): object {
  return JSON.parse(JSON.stringify(wanted ?? {}), (_key, value: unknown) =>
    typeof value === 'string' && /^\/.*\/$|…/.test(value) ? expect.stringMatching(patternOf(value)) : value,
  ) as object
}

let made: Record<string, string | Buffer> | undefined

/** The contents of files that are made for the tests, by the name that stands for them. */
function madeFiles(): Record<string, string | Buffer> {
  if (made === undefined) {
    const authority = createAuthority()
    const own = authority.issue({ names: ['gw.example.org'] })
    const revocations = authority.revoke([])
    made = {
      '<authority>': authority.ca,
      '<certificate>': own.cert,
      '<key>': own.key,
      '<revocations>': revocations,
      // The fourth column of the second line is no UTF-8.
      '<latin-1>': Buffer.from('#\n# M\xfcller\n', 'latin1'),
      '<latin-1 of a secret>': Buffer.from('secret-\xe9', 'latin1'),
      '<utf-16>': Buffer.from('\ufefflog: { level: info }\n', 'utf16le'),
      '<utf-16 without a mark>': Buffer.from('log: { level: info }\n', 'utf16le').swap16(),
      '<der>': Buffer.from([0x30, 0x82, 0x01, 0xff]),
    }
  }
  return made
}
