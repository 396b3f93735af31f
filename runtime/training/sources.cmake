set(training_sources)
set(training_headers
  training/checkpoint.h
  training/learning_rate.h
  training/loss_scale.h
  training/optimizer.h
  training/recipe.h)
