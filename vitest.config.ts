import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { keepCompiledCode } from './test/support/compiled-code.ts'
import { keepFoldersOnDisk } from './test/support/temporary-place.ts'
import { SkippedTests } from './test/all/skipped-tests.ts'

keepCompiledCode()
keepFoldersOnDisk()

/** They take or wait longest. At the end they would run alone, on one processor. */
const first = [
  'test/simulation/simulation.test.ts',
  'test/promises/reloads-reach-options.test.ts',
  'test/promises/lost-fields.test.ts',
  'test/promises/silent-trucks.test.ts',
  'test/promises/times-of-a-wrong-clock.test.ts',
  'test/app/ways-of-not-working.test.ts',
  'test/app/new-spool.test.ts',
  'test/cli/transcripts.test.ts',
  'test/ingest/mqtt/sessions.test.ts',
  // Their rows are in YAML beside them: vitest takes small files for quick ones.
  'test/ingest/broker/device-stories.test.ts',
  'test/promises/vehicles-of-one-message.test.ts',
  'test/delivery/stories/stories.test.ts',
  'test/ingest/bridges/bridges.test.ts',
  'test/ops/http/request-rights/login.test.ts',
  'test/cli/command-cases.test.ts',
  'test/config/config-cases.test.ts',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification) => {
      const place = first.findIndex((path) => moduleId.endsWith(path))
      return place === -1 ? first.length : place
    }
    return (await super.sort(files)).toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:system` runs these: they need npm and the registry, kill the daemon many times, or take more than
    // some ten seconds (`*.slow.test.ts`). `npm run test:mutations` tries mistakes that tests must notice.
    exclude: [
      'test/system/**',
      'test/**/*mutations.test.ts',
      'test/**/*-kill.test.ts',
      'test/**/*.slow.test.ts',
      'test/crash/*-*.test.ts',
    ],
    // Workers are processes, because databases are opened and signals sent. A worker runs many files: loading the
    // modules again for each takes 40 % of the processor time. So a file leaves nothing behind in the process: no
    // changed environment, no listener of signals, no open handle.
    pool: 'forks',
    isolate: false,
    // Two more than there are processors: most of the time a test waits for a disk, a socket or another process.
    maxWorkers: availableParallelism() + 2,
    setupFiles: ['test/support/property-seed.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new SkippedTests()],
  },
})
