set(training_sources
  training/learning_rate.cc
  training/loss_scale.cc
  training/optimizer.cc
  training/optimizer_kernels.cc
  training/recipe.cc
  training/shipped_recipes.cc)
set(training_headers
  training/checkpoint.h
  training/learning_rate.h
  training/loss_scale.h
  training/optimizer.h
  training/optimizer_kernels.h
  training/recipe.h)
set(training_embedded
  training/recipes/akiba-2017.yaml
  training/recipes/chainermn-2018.yaml
  training/recipes/fashion-mnist.yaml
  training/recipes/goyal-2017.yaml
  training/recipes/jizhi-alexnet.yaml
  training/recipes/jizhi-resnet50.yaml
  training/recipes/paisoar.yaml
  training/recipes/smith-2017.yaml)
# The same bits on every CPU; square roots in vectors.
set_source_files_properties(training/optimizer_kernels.cc
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=off;-fno-math-errno;-O3")
