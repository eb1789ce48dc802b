import { tellStories } from '../../support/device-stories.ts'

tellStories(import.meta.filename)
